"""The suite's cases are assertions in a package that ships; pytest shows what is in them too."""

import pytest

pytest.register_assert_rewrite("coordination.testing")
