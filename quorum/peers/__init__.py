"""What nodes say to each other on an open link: dispatch, the format of a link, files, digests.

Here lives the way of a frame to the part that it is for; the bytes of a frame are read and written
in `quorum.wire`. Door: every module, for `quorum.node` alone.
"""
