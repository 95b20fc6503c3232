"""The console: a web page over an index of a log (`logberg audit serve`).

Rule: it only reads, and an answer is bounded: a page of rows, within a deadline. `console` answers
requests and keeps the index up; `log_source` says where batches come from; `static` holds the page,
which is plain HTML, CSS and modules. No socket and no thread is here: `logberg` brings both.
Door: `console`, `log_source`, `page_files`.
"""
