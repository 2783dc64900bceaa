//! What a part tries in vain once it is confined. Each runs in a process of its own: what is given up does not come back.

use super::{Part, confine};
use crate::serve::confine as files;
use rustix::io::{Errno, ioctl_fionread};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use storscope_collect::root::Root;

/// Set in the process that is confined.
const MARK: &str = "STORSCOPE_CONFINED";

/// A file that everyone may read and that is no part of any part's work.
const ANY_FILE: &str = "/etc/passwd";

/// A directory to write in when the calling test, whose full path is `test`, is to go on in this process and to be confined
/// there. Otherwise runs it in a process of its own, panics when that fails, and gives nothing.
fn go_on(test: &str) -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os(MARK) {
        return Some(dir.into());
    }
    let dir = tempfile::tempdir().unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    let output = again.args(["--exact", test, "--test-threads=1"]).env(MARK, dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{test}: {text}{errors}");
    None
}

fn denied<T>(what: &str, outcome: io::Result<T>) {
    let error = outcome.err().unwrap_or_else(|| panic!("{what} is allowed"));
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{what}: {error}");
}

/// What no part may do.
fn nothing_in_common(writable: &Path) {
    denied("a program", Command::new("/bin/true").spawn());
    denied("a connection", TcpStream::connect(("127.0.0.1", 9)));
    denied("a datagram socket", UdpSocket::bind(("127.0.0.1", 0)));
    denied("a Unix socket", UnixStream::connect("/run/systemd/notify"));
    denied("a new file", File::create(writable.join("new")));
    denied("a file to be written", File::options().append(true).open(ANY_FILE));
    assert_eq!(ioctl_fionread(io::stdin()), Err(Errno::PERM), "an ioctl that is not listed");
}

#[test]
fn the_collector_sets_up_no_ring_and_reaches_nobody() {
    let Some(dir) = go_on("parts::escapes::the_collector_sets_up_no_ring_and_reaches_nobody") else { return };
    assert!(tokio_uring::Runtime::new(&tokio_uring::builder()).is_ok(), "there are no rings here at all");
    confine::privileges(Part::Collector);
    assert_eq!(confine::system_calls(Part::Collector), Vec::<String>::new());
    denied("io_uring", tokio_uring::Runtime::new(&tokio_uring::builder()));
    assert!(File::open(ANY_FILE).is_ok(), "the collector reads files");
    nothing_in_common(&dir);
    // Threads are started all the same.
    assert_eq!(std::thread::spawn(|| 7).join().unwrap(), 7);
}

#[test]
fn the_prober_reaches_nobody_and_writes_nothing() {
    let Some(dir) = go_on("parts::escapes::the_prober_reaches_nobody_and_writes_nothing") else { return };
    confine::privileges(Part::Prober);
    assert_eq!(confine::system_calls(Part::Prober), Vec::<String>::new());
    assert!(tokio_uring::Runtime::new(&tokio_uring::builder()).is_ok(), "the prober has a ring");
    assert!(File::open(ANY_FILE).is_ok(), "the prober reads devices");
    nothing_in_common(&dir);
}

#[test]
fn the_server_opens_no_device_and_no_file() {
    let Some(dir) = go_on("parts::escapes::the_server_opens_no_device_and_no_file") else { return };
    std::fs::write(dir.join("own"), "").unwrap();
    let own = dir.clone();
    confine::privileges(Part::Server);
    let keeper = std::thread::spawn(move || {
        assert_eq!(files::only(&own), Vec::<String>::new());
        assert!(File::create(own.join("new")).is_ok(), "the state is written");
        assert!(std::fs::rename(own.join("new"), own.join("own")).is_ok(), "the state is replaced");
        denied("a file outside the state directory", File::open(ANY_FILE));
        denied("a device", File::open(Root::live().node("null")));
    });
    keeper.join().unwrap();
    assert_eq!(files::no_files(), Vec::<String>::new());
    assert_eq!(confine::system_calls(Part::Server), Vec::<String>::new());
    denied("a file", File::open(ANY_FILE));
    denied("a device", File::open(Root::live().node("null")));
    denied("the state directory, in another thread", File::open(dir.join("own")));
    denied("io_uring", tokio_uring::Runtime::new(&tokio_uring::builder()));
    nothing_in_common(&dir);
}

#[test]
fn the_thread_of_the_state_directory_is_confined_also_when_it_is_late() {
    let Some(dir) = go_on("parts::escapes::the_thread_of_the_state_directory_is_confined_also_when_it_is_late") else {
        return;
    };
    confine::privileges(Part::Server);
    assert_eq!(confine::system_calls(Part::Server), Vec::<String>::new());
    let late = std::thread::spawn(move || {
        assert_eq!(files::only(&dir), Vec::<String>::new());
        assert!(File::create(dir.join("new")).is_ok(), "the state is written");
        denied("a file outside the state directory", File::open(ANY_FILE));
    });
    late.join().unwrap();
}
