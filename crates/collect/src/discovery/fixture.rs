//! A made-up host in a temporary folder.

use crate::root::Root;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A host that a test builds file by file. Paths are below sysfs unless a method says otherwise.
pub(crate) struct Host {
    folder: tempfile::TempDir,
    pub(crate) root: Root,
}

impl Host {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::captured(folder.path());
        for top in [&root.sys, &root.proc, &root.dev] {
            std::fs::create_dir_all(top).unwrap();
        }
        Self { folder, root }
    }

    /// A file of the captured host, by its path from the top.
    pub(crate) fn top(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write(&self.folder.path().join(path), content.as_ref())
    }

    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write(&self.root.sys(path), content.as_ref())
    }

    pub(crate) fn files(&self, folder: &str, files: &[(&str, &str)]) {
        for (name, content) in files {
            self.file(&format!("{folder}/{name}"), format!("{content}\n"));
        }
    }

    pub(crate) fn proc(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write(&self.root.proc(path), content.as_ref())
    }

    pub(crate) fn folder(&self, path: &str) -> PathBuf {
        let folder = self.root.sys(path);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        let link = self.root.sys(path);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
    }

    /// A block device below `parent` (a folder in `devices`), with its link in `class/block`.
    pub(crate) fn block(&self, parent: &str, name: &str, files: &[(&str, &str)]) -> String {
        let folder = format!("{parent}/{name}");
        self.folder(&folder);
        self.files(&folder, files);
        self.link(&format!("class/block/{name}"), &format!("../../{folder}"));
        folder
    }

    /// A partition of the block device in `disk`.
    pub(crate) fn partition(&self, disk: &str, name: &str, number: &str, devnum: &str) -> String {
        self.block(disk, name, &[("partition", number), ("dev", devnum), ("size", "2048"), ("ro", "0")])
    }

    /// A SCSI disk below `host` (a folder in `devices` that ends in a SCSI host); returns the folder of its SCSI device.
    pub(crate) fn scsi(&self, host: &str, address: &str, name: &str, files: &[(&str, &str)]) -> String {
        let target = address.rsplit_once(':').unwrap().0;
        let device = format!("{host}/target{target}/{address}");
        self.files(&device, &[("scsi_level", "7"), ("type", "0")]);
        self.files(&device, files);
        let folder =
            self.block(&format!("{device}/block"), name, &[("size", "2097152"), ("removable", "0"), ("ro", "0")]);
        self.link(&format!("{folder}/device"), &format!("../../../{address}"));
        device
    }

    /// An NVMe controller below the PCI function `function` (a folder in `devices`), with its link in `class/nvme`.
    pub(crate) fn nvme(&self, function: &str, name: &str, files: &[(&str, &str)]) -> String {
        let folder = format!("{function}/nvme/{name}");
        self.files(&folder, &[("transport", "pcie"), ("state", "live")]);
        self.files(&folder, files);
        self.link(&format!("class/nvme/{name}"), &format!("../../{folder}"));
        folder
    }

    /// A namespace (or hidden path) of the controller in `controller`.
    pub(crate) fn namespace(&self, controller: &str, name: &str, files: &[(&str, &str)]) -> String {
        let folder = self.block(controller, name, &[("nsid", "1"), ("hidden", "0"), ("size", "1000")]);
        self.files(&folder, files);
        let owner = Path::new(controller).file_name().unwrap().to_str().unwrap();
        self.link(&format!("{folder}/device"), &format!("../../{owner}"));
        folder
    }
}

fn write(path: &Path, content: &[u8]) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
    path.to_path_buf()
}
