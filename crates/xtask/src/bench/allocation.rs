//! What one scrape allocates after another, counted by an allocator that counts.

use super::criterion::output;
use super::figure::Figure;
use anyhow::Context;
use std::path::Path;

/// Runs the count: memory that is kept from scrape to scrape would grow without end.
///
/// # Errors
/// When it does not run.
pub(super) fn measure(program: &Path) -> anyhow::Result<[Figure; 2]> {
    let text = output(program, &[])?;
    let number = |name: &str| {
        let mut words = text.split_whitespace().skip_while(|word| *word != name).skip(1);
        let found = words.next().and_then(|word| word.parse::<i64>().ok());
        found.with_context(|| format!("no {name} in {text}"))
    };
    let (first, last, kept) = (number("allocated_first")?, number("allocated_last")?, number("kept")?);
    Ok([
        Figure::holds(
            "kB allocated by scrape 1 and by scrape 100",
            format!("{}, {}", first / 1000, last / 1000),
            "no growth",
            last <= first,
        ),
        Figure::holds("bytes kept after 100 scrapes", kept.to_string(), "0", kept == 0),
    ])
}
