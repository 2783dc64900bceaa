//! Which test stands for which field case: `field-cases.txt` has the case, the file and the test on a line, or a dash
//! and the reason why the case does not concern the agent.

use std::collections::BTreeSet;
use std::path::Path;

const TABLE: &str = include_str!("field-cases.txt");

/// Cases of each section that the agent has to do with.
const SECTIONS: [(&str, u32, u32); 8] =
    [("A", 1, 13), ("B", 1, 5), ("C", 1, 8), ("D", 1, 13), ("E", 1, 7), ("G", 1, 5), ("H", 5, 8), ("I", 1, 2)];

#[test]
fn every_case_has_a_test_that_exists() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = BTreeSet::new();
    for line in TABLE.lines() {
        let mut words = line.splitn(3, ' ');
        let (case, file, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        assert!(seen.insert(case.to_owned()), "{case} comes twice");
        if file == "-" {
            continue;
        }
        let source = std::fs::read_to_string(repository.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(
            source.contains(&format!("#[test]\n    fn {rest}(")) || source.contains(&format!("#[test]\nfn {rest}(")),
            "{case}: no {rest} in {file}"
        );
    }
    let wanted = SECTIONS
        .iter()
        .flat_map(|(section, first, last)| (*first..=*last).map(move |number| format!("{section}{number}")));
    assert_eq!(seen, wanted.collect::<BTreeSet<_>>());
}
