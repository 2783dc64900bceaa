//! What a capture holds, before it is written.

use std::collections::BTreeMap;
use storscope_drive::DENIED_LISTING;

/// Most files, links and folders of one capture.
pub(super) const MAX_ENTRIES: usize = 1_000_000;
/// Most bytes of files in one capture.
pub(super) const MAX_TOTAL: usize = 256 << 20;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// A folder that may be empty.
    Folder,
    /// A file's content.
    File(Vec<u8>),
    /// A symbolic link with a relative target.
    Link(String),
    /// What was denied with this errno(3) value, EACCES or EPERM.
    Denied(i32),
}

/// Entries by path below the directory that is written (`sys/class/block/sda`). What has no entry of its own but lies
/// above one is a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
    bytes: usize,
}

impl Tree {
    /// Adds an entry, or replaces it. False when the capture is full.
    pub(super) fn insert(&mut self, path: String, node: Node) -> bool {
        let length = |node: &Node| match node {
            Node::File(bytes) => bytes.len(),
            Node::Folder | Node::Link(_) | Node::Denied(_) => 0,
        };
        let before = self.nodes.get(&path);
        let bytes = self.bytes - before.map_or(0, length) + length(&node);
        if bytes > MAX_TOTAL || (before.is_none() && self.nodes.len() >= MAX_ENTRIES) {
            return false;
        }
        // A folder that is found again does not hide what was there, nor a denial what was read at another time.
        if before.is_none() || !matches!(node, Node::Folder | Node::Denied(_)) {
            self.bytes = bytes;
            self.nodes.insert(path, node);
        }
        true
    }

    /// Leaves nothing below a denied folder but what was read of it all the same: the denial is that of its list then.
    pub(super) fn settle(&mut self) {
        let denied = self.nodes.iter().filter(|(_, node)| matches!(node, Node::Denied(_)));
        let denied: Vec<String> = denied.map(|(path, _)| path.clone()).collect();
        for folder in denied {
            let top = format!("{folder}/");
            let below = self.nodes.range(top.clone()..).take_while(|(path, _)| path.starts_with(&top));
            let (files, rest): (Vec<_>, Vec<_>) = below.partition(|(_, node)| matches!(node, Node::File(_)));
            if files.is_empty() {
                let rest: Vec<String> = rest.into_iter().map(|(path, _)| path.clone()).collect();
                rest.iter().for_each(|path| drop(self.nodes.remove(path)));
            } else if let Some(denial) = self.nodes.remove(&folder) {
                self.nodes.entry(format!("{folder}/{DENIED_LISTING}")).or_insert(denial);
            }
        }
    }

    /// All entries, by path.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// The content of the file at `path`.
    pub(super) fn file(&self, path: &str) -> Option<&[u8]> {
        match self.nodes.get(path)? {
            Node::File(bytes) => Some(bytes),
            Node::Folder | Node::Link(_) | Node::Denied(_) => None,
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes in all files.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The last component of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What lies above a path.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_do_not_hide_files_and_bytes_are_counted_once() {
        let mut tree = Tree::default();
        assert!(tree.insert("sys/a".to_owned(), Node::File(vec![1; 10])));
        assert!(tree.insert("sys/a".to_owned(), Node::File(vec![1; 4])));
        assert!(tree.insert("sys/a".to_owned(), Node::Folder));
        assert_eq!((tree.len(), tree.bytes(), tree.file("sys/a")), (1, 4, Some([1; 4].as_slice())));
    }

    #[test]
    fn denials_hide_nothing_and_nothing_hides_them() {
        let mut tree = Tree::default();
        let file = Node::File(vec![1; 10]);
        tree.insert("sys/a".to_owned(), file.clone());
        tree.insert("sys/a".to_owned(), Node::Denied(13));
        tree.insert("sys/b".to_owned(), Node::Denied(13));
        tree.insert("sys/b".to_owned(), Node::Folder);
        tree.insert("sys/b-c".to_owned(), Node::Folder);
        tree.insert("sys/d".to_owned(), Node::Denied(1));
        tree.insert("sys/d/e".to_owned(), file.clone());
        for below in ["sys/f", "sys/f/g", "sys/f/g/h"] {
            tree.insert(below.to_owned(), Node::Denied(13));
        }
        tree.insert("sys/f/g/i".to_owned(), Node::Folder);
        tree.settle();
        let found: Vec<_> = tree.iter().collect();
        let expected = [
            ("sys/a", &file),
            ("sys/b", &Node::Denied(13)),
            ("sys/b-c", &Node::Folder),
            ("sys/d/.denied", &Node::Denied(1)),
            ("sys/d/e", &file),
            ("sys/f", &Node::Denied(13)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_full_capture_takes_no_more() {
        let mut tree = Tree::default();
        assert!(!tree.insert("big".to_owned(), Node::File(vec![0; MAX_TOTAL + 1])));
        assert_eq!(tree.len(), 0);
    }

    #[test]
    fn names_and_parents() {
        assert_eq!((file_name("sys/block/sda"), parent("sys/block/sda")), ("sda", "sys/block"));
        assert_eq!((file_name("sys"), parent("sys")), ("sys", ""));
    }
}
