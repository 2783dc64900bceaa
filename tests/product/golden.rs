//! Golden files in `tests/golden`.

use std::path::Path;

/// Compares `text` with the golden file `name`; `STORSCOPE_BLESS=1` takes the new text.
pub(crate) fn compare(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
    if std::env::var_os("STORSCOPE_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = wanted.lines().zip(text.lines()).position(|(old, new)| old != new);
    let line = differs.map(|line| (line + 1, wanted.lines().nth(line), text.lines().nth(line)));
    assert!(wanted == text, "{name} differs, first in {line:#?}; set STORSCOPE_BLESS=1 to take the new text");
}
