//! `/proc/swaps` (proc_swaps(5)).

use super::mountinfo::unescape;

/// Device nodes in use as swap. Swap files are left out: they lie on a mounted file system.
pub(crate) fn parse(text: &[u8]) -> Vec<String> {
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    lines
        .filter_map(|line| {
            let mut fields = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty());
            let (name, kind) = (fields.next()?, fields.next()?);
            (kind == b"partition").then(|| unescape(name))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;
    use proptest::prelude::*;

    #[test]
    fn partitions_but_no_files() {
        let text = b"Filename\t\t\tType\t\tSize\tUsed\tPriority\n\
            /dev/dm-2                               partition\t131068\t176\t-2\n\
            /swap\\040file                           file\t\t1024\t0\t-3\n\
            /dev/zram0                              partition\t8\t0\t100\n";
        let areas = parse(text);
        let names: Vec<_> = areas.iter().filter_map(|area| Root::node_name(area)).collect();
        assert_eq!(names, ["dm-2", "zram0"]);
        assert_eq!(parse(b""), Vec::<String>::new());
        assert_eq!(parse(b"Filename\tType\n\n"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }
    }
}
