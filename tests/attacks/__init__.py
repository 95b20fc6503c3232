"""The attacks that SECURITY.md lists.

- `listed`: the rows of the list, with the tests of each;
- `__main__`: makes them all, and says of each row whether it holds (`make attacks`);
- `test_code_in_bytes`: attacks that concern every part alike.
"""
