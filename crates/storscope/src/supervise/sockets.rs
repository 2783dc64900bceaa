//! The listening sockets: those of the service manager (sd_listen_fds(3)), or opened here.

use anyhow::{Context, anyhow};
use listenfd::ListenFd;
use std::io;
use std::net::{SocketAddr, TcpListener};
use tokio::net::TcpSocket;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// The sockets to answer on. Those that the service manager passes stand for the configured addresses.
///
/// # Errors
/// An address that cannot be listened on, or a passed socket that is of another kind.
pub(super) fn open(addresses: &[SocketAddr]) -> anyhow::Result<Vec<TcpListener>> {
    let mut passed = ListenFd::from_env();
    if passed.len() == 0 {
        return addresses.iter().map(|address| listen(*address)).collect();
    }
    tracing::info!(
        sockets = passed.len(),
        "listening on what the service manager passed, not on the configured addresses"
    );
    (0..passed.len())
        .map(|index| {
            let listener = passed.take_tcp_listener(index);
            listener.ok().flatten().with_context(|| format!("socket {index} of the service manager is not of TCP"))
        })
        .collect()
}

/// Opens one listening socket.
///
/// # Errors
/// Names the address and what is wrong with it.
fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let open = || -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)?.into_std()
    };
    open().map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "cannot listen on {address}: the port is in use (another storscope?); choose one with --listen ADDR:PORT"
        ),
        io::ErrorKind::AddrNotAvailable => anyhow!("cannot listen on {address}: not an address of this host"),
        io::ErrorKind::PermissionDenied => {
            anyhow!("cannot listen on {address}: permission denied (ports below 1024 need CAP_NET_BIND_SERVICE)")
        }
        _ => anyhow!("cannot listen on {address}: {error}"),
    })
}
