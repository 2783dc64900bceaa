//! `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).

use crate::discovery::block::parse_devnum;
use std::borrow::Cow;
use storscope_model::device::DevNum;
use storscope_model::fault::Fault;

/// Most mounts of block devices that are kept.
pub const MAX_MOUNTS: usize = 4096;
/// Most lines that do not parse of which each gets a fault.
const MAX_BAD_LINES: usize = 8;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountLine {
    /// Device number; major 0 for a file system that is not on one block device alone.
    pub(super) devnum: DevNum,
    /// Where in the file system the mount begins.
    pub(super) root: String,
    /// Mount point.
    pub(super) point: String,
    /// File system type.
    pub(super) fs_type: String,
    /// What was mounted: a device node, or anything else.
    pub(super) source: String,
    /// The file system's own options.
    options: String,
}

impl MountLine {
    /// True for a bind mount of a folder inside a file system. A btrfs mount names its subvolume in its options: its
    /// root is a subvolume when it is mounted as such.
    pub(super) fn is_bind(&self) -> bool {
        let subvolume = self.options.split(',').find_map(|option| option.strip_prefix("subvol="));
        self.root != subvolume.unwrap_or("/")
    }
}

/// The lines of `text` whose mount point is a path, and a fault for each of the first lines that are no mountinfo.
pub(crate) fn parse(path: &str, text: &[u8]) -> (Vec<MountLine>, Vec<Fault>) {
    let mut mounts = Vec::new();
    let mut faults = Vec::new();
    for (number, line) in (1_u32..).zip(text.split(|byte| *byte == b'\n')) {
        if line.is_empty() {
            continue;
        }
        match parse_line(line) {
            // Not every mount point is a path: `net:[4026533460]`.
            Some(mount) if mount.point.starts_with('/') => mounts.push(mount),
            Some(_) => {}
            None if faults.len() < MAX_BAD_LINES => {
                faults.push(Fault::parse(path, number, "not a mountinfo line", line))
            }
            None => {}
        }
    }
    (mounts, faults)
}

fn parse_line(line: &[u8]) -> Option<MountLine> {
    if line.contains(&0) {
        return None;
    }
    let mut fields = line.split(|byte| *byte == b' ');
    let devnum = fields.nth(2)?;
    let (root, point) = (fields.next()?, fields.next()?);
    // Mount options, then any number of optional fields up to a lone dash.
    fields.by_ref().find(|field| *field == b"-")?;
    let (fs_type, source) = (fields.next()?, fields.next()?);
    Some(MountLine {
        devnum: parse_devnum(std::str::from_utf8(devnum).ok()?)?,
        root: unescape(root),
        point: unescape(point),
        fs_type: unescape(fs_type),
        source: unescape(source),
        options: unescape(fields.next().unwrap_or_default()),
    })
}

/// The kernel writes space, tab, newline, backslash and `#` as a backslash and three octal digits
/// (fs/proc_namespace.c). Bytes that are not UTF-8 are replaced.
pub(super) fn unescape(field: &[u8]) -> String {
    let mut bytes: Cow<'_, [u8]> = Cow::Borrowed(field);
    if field.contains(&b'\\') {
        let mut plain = Vec::with_capacity(field.len());
        let mut rest = field;
        while let [first, after @ ..] = rest {
            rest = after;
            match (first, after) {
                (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', next @ ..]) => {
                    plain.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                    rest = next;
                }
                _ => plain.push(*first),
            }
        }
        bytes = Cow::Owned(plain);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;
    use proptest::prelude::*;

    fn one(line: &str) -> MountLine {
        let (mut mounts, faults) = parse("mountinfo", line.as_bytes());
        assert_eq!(faults, []);
        mounts.remove(0)
    }

    #[test]
    fn a_line_with_optional_fields() {
        let mount = one("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue");
        assert_eq!(mount.devnum, DevNum { major: 98, minor: 0 });
        assert_eq!((mount.root.as_str(), mount.point.as_str()), ("/mnt1", "/mnt2"));
        assert_eq!((mount.fs_type.as_str(), Root::node_name(&mount.source)), ("ext3", Some("root")));
        assert!(mount.is_bind());
    }

    #[test]
    fn octal_escapes_are_decoded() {
        let mount = one(r"36 35 8:1 / /a\040b\011c\012d\134e\043 rw - ext4 /dev/sda1 rw");
        assert_eq!(mount.point, "/a b\tc\nd\\e#");
        assert_eq!(unescape(br"\04 \400 \\ \"), r"\04 \400 \\ \");
    }

    #[test]
    fn subvolumes_are_no_bind_mounts() {
        let options = "rw,space_cache=v2,subvolid=257,subvol=/@home";
        assert!(!one(&format!("36 35 0:31 /@home /home rw - btrfs /dev/sda2 {options}")).is_bind());
        assert!(one(&format!("37 35 0:31 /@home/a /srv rw - btrfs /dev/sda2 {options}")).is_bind());
        assert!(!one("38 35 8:1 / / rw - ext4 /dev/sda1 rw").is_bind());
    }

    #[test]
    fn what_is_no_path_is_left_out() {
        let (mounts, faults) = parse("m", b"1149 48 0:4 / net:[4026533460] rw - nsfs nsfs rw\n");
        assert_eq!((mounts, faults), (vec![], vec![]));
    }

    #[test]
    fn bad_lines_cost_only_themselves() {
        let text = b"36 35 8:1 / / rw - ext4 /dev/sda1 rw\nhalf a li\n37 35 x:1 / /b rw - ext4 s rw\n\0\0\0\n38 35 8:2 / /c rw - ext4 s";
        let (mounts, faults) = parse("m", text);
        assert_eq!(mounts.iter().map(|mount| mount.point.as_str()).collect::<Vec<_>>(), ["/", "/c"]);
        let lines: Vec<u32> = faults
            .iter()
            .map(|fault| match fault {
                Fault::Parse { line, .. } => *line,
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(lines, [2, 3, 4]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let (_, faults) = parse("m", &bytes);
            prop_assert!(faults.len() <= MAX_BAD_LINES);
        }

        #[test]
        fn a_mount_point_comes_back(point in "/[ \\t\\n\\\\#a-zµ]{0,20}") {
            let mut escaped = Vec::new();
            for byte in point.bytes() {
                if b" \t\n\\#".contains(&byte) {
                    escaped.extend(format!("\\{byte:03o}").into_bytes());
                } else {
                    escaped.push(byte);
                }
            }
            prop_assert_eq!(unescape(&escaped), point);
        }
    }
}
