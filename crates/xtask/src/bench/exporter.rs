//! node_exporter with only its diskstats collector, the peer of a scrape.

use anyhow::bail;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Name of the program in Debian's package of the same name.
pub(super) const PROGRAM: &str = "prometheus-node-exporter";
/// How long it may take to listen.
const READY: Duration = Duration::from_secs(20);

/// A running exporter, ended when dropped.
pub(super) struct Exporter {
    child: Child,
    address: String,
}

impl Exporter {
    /// Starts it for the devices that `pattern` names, in place of those that it leaves out by default; without the
    /// metrics of its own process.
    ///
    /// # Errors
    /// When it does not listen in time.
    pub(super) fn start(pattern: &str) -> anyhow::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let child = Command::new(PROGRAM)
            .args(["--collector.disable-defaults", "--collector.diskstats", "--web.disable-exporter-metrics"])
            .arg("--collector.diskstats.device-exclude=")
            .arg(format!("--collector.diskstats.device-include={pattern}"))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let exporter = Self { child, address };
        let until = Instant::now() + READY;
        while TcpStream::connect(&exporter.address).is_err() {
            if Instant::now() > until {
                bail!("{PROGRAM} does not listen");
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(exporter)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // Either may fail only because it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
