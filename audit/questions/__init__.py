"""Questions that are answered from a log's files: state, difference, history, search, proof.

Here lives one answer a module, and the words for things in an answer. Files are opened in
`audit.places` and read in `audit.reading`. Door: every module but `history_values`.
"""
