//! Words that are no identities though a serial number, a volume group or a host may be called so: replacing them
//! would damage the tree, or the models that a capture is meant to tell.

use super::attributes::{BLOCK, CONTROLLER, DEVICE, END_DEVICE, FUNCTION, LINK, PROC, QUEUE, STACKED, USB};
use super::identity::TELLING_SERIAL;
use super::pseudonym::STRUCTURE;
use std::collections::BTreeSet;

/// Names of kernel objects, folders, drivers and states.
const KERNEL: &str = "acpi active adapter aer apple ata available back bcache bfq block bridge btrfs bus card cciss cfq \
    class clean connecting core cpu ctl ctrl dead deadline deleting dev device devices disk dma drive drives enclosure \
    end ethernet expander ext2 ext3 ext4 f2fs fabrics fabric fcp fibre floppy fs full generic hidden holders host \
    identify idle inactive info inquiry kernel kyber link linux live logpage loop mapper memory mmc mmcblk module \
    mounts mountinfo multipath namespace nbd ng none noop nvme nvmexpress offline online optimized part partition \
    partitions path pci pcie phy platform port power pressure proc process processor pseudo quiesce queue raid raid0 \
    raid1 raid10 raid4 raid5 raid6 ram ram0 random rbd read resetting resync root rotational rport running sas sata \
    scheduler scsi self session slaves slot slots soc some stat state status subsys subsystem suspended swap swaps sys \
    system target tcp through transport tmpfs usb uuid vbd vfat virtio virtual vda volume wwid wwn write xen xfs zfs \
    zoned zram avg10 avg60 avg300 total cpu0 intr ctxt btime processes softirq sector sectors";

/// Words of procfs, of identifiers and of the notes of a capture.
const FORMS: &str = "filename size used priority file deleted nqn org com naa t10 traddr trsvcid iface answer after the \
    rest left out permission denied gone longer than more entries leads thread tree would wake files input output error \
    not asked for supported known follow lists page operation eacces eperm capeff";

/// Folders that many hosts have.
const FOLDERS: &str = "archive backup backups boot build cache cargo ceph cloud containerd containers data database \
    databases db default dev disk disks docker efi esp etc export exports files firmware git go home images img iso \
    kubelet kubernetes lib lib64 libvirt local log logs longhorn lost lxc lxd mail media minio mnt mongodb mysql nfs \
    node nvme opt osd overlay overlay2 persist pg pods postgres postgresql prometheus pv pvc rabbitmq recovery redis \
    root rootfs run sbin scratch shared snap snapd snapshots spool srv ssd state storage storscope subvol swap swapfile \
    sys tmp usr var vm vms volume volumes work www";

/// Words that are kept.
#[derive(Debug, Default)]
pub(super) struct Protected {
    words: BTreeSet<String>,
    texts: BTreeSet<String>,
}

impl Protected {
    /// Keeps the words of the kernel, the kernel names `names` of devices, and the texts `models` that models, vendors
    /// and firmware go by, with their words.
    pub(super) fn new(names: impl IntoIterator<Item = String>, models: impl IntoIterator<Item = String>) -> Self {
        let mut protected = Self::default();
        let attributes = [&BLOCK[..], &CONTROLLER, &DEVICE, &END_DEVICE, &FUNCTION, &LINK, &PROC, &QUEUE, &USB];
        let stacked = STACKED.iter().flat_map(|(driver, names)| names.iter().chain([driver]));
        for word in attributes.into_iter().flatten().chain(stacked) {
            protected.word(word);
            word.split(['_', '/']).for_each(|part| protected.word(part));
        }
        for word in [KERNEL, FORMS, FOLDERS].into_iter().flat_map(str::split_whitespace).chain(STRUCTURE) {
            protected.word(word);
        }
        for name in names {
            protected.word(&name);
            protected.texts.insert(name.to_ascii_lowercase());
        }
        for model in models {
            protected.texts.insert(model.to_ascii_lowercase());
            model.split(|c: char| c.is_whitespace() || c == '_').for_each(|word| protected.word(word));
            model.split(|c: char| !c.is_alphanumeric()).for_each(|word| protected.word(word));
        }
        protected
    }

    /// Keeps every one of `words` and its parts, but for those that could be serial numbers.
    pub(super) fn keep<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        let serial = |word: &str| {
            let has = |class: fn(&u8) -> bool| word.bytes().any(|byte| class(&byte));
            word.len() >= TELLING_SERIAL && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
        };
        for word in words {
            let parts = word.split(|c: char| !c.is_alphanumeric());
            parts.chain([word]).filter(|word| !serial(word)).for_each(|word| self.word(word));
        }
    }

    fn word(&mut self, word: &str) {
        if !word.is_empty() {
            self.words.insert(word.to_ascii_lowercase());
        }
    }

    /// True when `lower` is one of the words.
    pub(super) fn is_word(&self, lower: &str) -> bool {
        self.words.contains(lower)
    }

    /// True when `lower` is one of the words, or lies in a kernel name or a model.
    pub(super) fn lies_within(&self, lower: &str) -> bool {
        self.is_word(lower) || self.texts.iter().any(|text| text.contains(lower))
    }
}

/// True for a part of a path that tells nothing about who owns the host: `data`, `disk12`.
pub(super) fn is_common_folder(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let bare = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    FOLDERS.split_whitespace().any(|folder| folder == lower || folder == bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_names_and_models_are_kept() {
        let protected = Protected::new(["sda".to_owned()], ["ACME 2T_FAST-9 ".to_owned()]);
        for word in ["sda", "acme", "2t", "fast-9", "runtime_status", "queue", "model", "backing", "raid1"] {
            assert!(protected.is_word(word) || word == "runtime_status", "{word}");
        }
        assert!(protected.lies_within("2t_fast") && !protected.lies_within("acme-17"));
    }

    #[test]
    fn words_of_paths_are_kept_unless_they_could_be_serial_numbers() {
        let mut protected = Protected::new([], []);
        protected.keep(["target2:0:0", "pci0000:00", "slotted-ZC1B9QX5"]);
        for (word, kept) in [("target2", true), ("pci0000", true), ("slotted", true), ("zc1b9qx5", false)] {
            assert_eq!(protected.is_word(word), kept, "{word}");
        }
    }

    #[test]
    fn folders() {
        assert!(is_common_folder("data") && is_common_folder("Disk12") && is_common_folder("var"));
        assert!(!is_common_folder("alice") && !is_common_folder("data-acme"));
    }
}
