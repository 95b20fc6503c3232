"""What a drawing of a benchmark may hold."""

import pytest

from benchmarks.instruments.vega_drawing import DrawingError, _cleaned


@pytest.mark.parametrize(
    "drawn",
    [
        '<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><image href="http://x"/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><a/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><path fill="url(#a)"/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><style/></svg>',
    ],
)
def test_a_drawing_holds_known_elements_only(drawn: str) -> None:
    with pytest.raises(DrawingError):
        _cleaned(drawn, "")


def test_a_drawing_keeps_no_handler_and_no_link() -> None:
    drawn = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0,0" onclick="x" href="y"/></svg>'
    kept = _cleaned(drawn, 'a "b" <c>')
    assert "onclick" not in kept
    assert "href" not in kept
    assert 'aria-label="a &quot;b&quot; &lt;c&gt;"' in kept
