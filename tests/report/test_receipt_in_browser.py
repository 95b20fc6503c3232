"""The page that checks receipts, opened from a file in a real browser."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.oracles.transparency.drawn_proofs import KEYS, drawn_log, proof_of
from tests.verifier.test_receipt_page import PAGE

pytestmark = [pytest.mark.process, pytest.mark.slow]
TREE, ENCODED = drawn_log(Random(1), 60)


def checked(driver: Any, folder: Path, proof: dict[str, Any]) -> tuple[str, str]:
    """The class and the text of the result, after somebody chose the files and pressed Check."""
    (folder / "receipt.json").write_text(json.dumps(proof))
    for number, key in enumerate(KEYS[:2]):
        (folder / f"{number}.pub").write_text(key.text + "\n")
    driver.get(PAGE.as_uri())
    driver.find_element(By.ID, "receipt").send_keys(str(folder / "receipt.json"))
    files = "\n".join(str(folder / f"{number}.pub") for number in range(2))
    driver.find_element(By.ID, "keyfiles").send_keys(files)
    driver.find_element(By.ID, "keys").send_keys(KEYS[2].text)
    driver.find_element(By.ID, "check").click()
    result = driver.find_element(By.ID, "result")
    WebDriverWait(driver, 20).until(lambda _: result.get_attribute("class"))
    return result.get_attribute("class"), result.text


def test_a_receipt_is_checked_from_files(running: Any, tmp_path: Path) -> None:
    running.get_log("performance")  # What other tests let the browser ask.
    kind, text = checked(running, tmp_path, proof_of(TREE, ENCODED, 7, 60, 30))
    assert (kind, text.split("\n")[0][:15]) == ("right", "RIGHT: offset 7"), text
    assert 'principal: "User:alice"' in text
    kind, text = checked(running, tmp_path, proof_of(TREE, ENCODED, 7, 60, 30) | {"leafIndex": 8})
    assert (kind, text[:19]) == ("refused", "REFUSED: inclusion:"), text
    asked = [
        entry
        for entry in running.get_log("performance")
        if "Network.requestWillBeSent" in entry["message"] and "http" in entry["message"]
    ]
    assert asked == [], "the page asks nobody"
