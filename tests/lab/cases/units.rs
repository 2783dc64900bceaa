//! The shipped units, run by systemd.

use super::super::guest::Guest;
use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::{NVME_FREE, SATA_ROTATING};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(30);
/// A rotating disk's next burst, and the next question for its power mode.
const STUCK_WITHIN: Duration = Duration::from_secs(40);
/// Ten times what a restart may take while a disk hangs.
const RESTART_LIMIT: Duration = Duration::from_secs(50);
/// What says which process holds which capability.
const SECURITY: &str = include_str!("../../../SECURITY.md");
/// Bits of the capabilities that it names (capabilities(7)).
const CAPABILITIES: [(&str, u32); 2] = [("CAP_SYS_RAWIO", 17), ("CAP_SYS_ADMIN", 21)];
const PROCESSES: [&str; 4] = ["supervisor", "collector", "prober", "server"];
const GROUP: &str = "/sys/fs/cgroup/system.slice/storscope.service/cgroup.procs";
/// Where a drop-in of this boot goes.
const DROP_IN: &str = "/run/systemd/system/storscope.service.d/lesser.conf";
/// Asks again and again over the loopback address; every answer's first line, or what is wrong, becomes a line.
const ASK: &str = r#"while [ ! -e /run/asked-enough ]; do
    printf "GET /healthz HTTP/1.0\r\nHost: lab\r\n\r\n" | socat -t 20 - TCP:127.0.0.1:10210,shut-none 2>&1 | head -n 1
done"#;

pub(super) fn shipped(rig: &Rig) -> Result<()> {
    let guest = rig.guest();
    works(rig)?;
    let state =
        guest.sh("systemctl show -p ActiveState,SubState,NRestarts,User storscope.service | sort | tr '\\n' ' '")?;
    ensure!(state == "ActiveState=active NRestarts=0 SubState=running User=storscope", "{state}");
    each_process_holds_what_is_documented(&guest)?;
    drives_are_only_read(rig)?;
    a_restart_refuses_nobody(&guest)?;
    guest.sh("systemctl reload storscope.service")?;
    works(rig)?;
    let log = rig.agent.log()?;
    for wrong in ["less confined than intended", "Failed", "ERROR"] {
        ensure!(!log.contains(wrong), "the journal says {wrong:?}:\n{log}");
    }
    guest.sh("systemctl kill --kill-whom=main --signal=KILL storscope.service")?;
    rig.eventually(SOON, |_| {
        let restarts = guest.sh("systemctl show -p NRestarts --value storscope.service")?;
        ensure!(restarts == "1", "restarts: {restarts}");
        Ok(())
    })?;
    works(rig)?;
    let count = processes(&guest)?.len();
    ensure!(count == PROCESSES.len(), "{count} processes after the supervisor was killed");
    Ok(())
}

/// The NVMe drive answers, and both drives are read ever more.
fn works(rig: &Rig) -> Result<()> {
    let (controller, devices) = drives(rig)?;
    let mut before: BTreeMap<String, f64> = BTreeMap::new();
    rig.eventually(SOON, |scrape| {
        let up = scrape.value("storscope_source_up", &[("controller", &controller), ("source", "smart_health")])?;
        ensure!(up == 1.0, "no SMART log");
        scrape.value("storscope_nvme_power_cycles_total", &[("controller", &controller)])?;
        no_denial(scrape)?;
        for device in &devices {
            let now = reads(scrape, device);
            let first = *before.entry(device.clone()).or_insert(now);
            ensure!(now > first, "{device}: {now} probe reads, no more than before");
        }
        Ok(())
    })
}

fn drives(rig: &Rig) -> Result<(String, [String; 2])> {
    let nvme = rig.nvme(NVME_FREE)?;
    let namespace = format!("{}n1", nvme.controller);
    Ok((nvme.controller, [namespace, rig.disk(SATA_ROTATING)?]))
}

fn reads(scrape: &Scrape, device: &str) -> f64 {
    scrape.all("storscope_probe_reads_total", &[("device", device)]).iter().map(|series| series.value).sum()
}

/// The drop-in below a heading of SECURITY.md.
fn drop_in(heading: &str) -> Result<&'static str> {
    let (_, section) = SECURITY.split_once(&format!("### {heading}\n")).with_context(|| format!("no {heading}"))?;
    let block = section.split_once("```ini\n").and_then(|(_, rest)| rest.split_once("```"));
    block.map(|(text, _)| text).with_context(|| format!("{heading}: no drop-in"))
}

pub(super) fn lesser(rig: &Rig) -> Result<()> {
    let with = |heading: &str| {
        let text = drop_in(heading)?;
        rig.guest().sh(&format!(
            "mkdir -p $(dirname {DROP_IN}) && cat >{DROP_IN} <<\"UNIT\"\n{text}UNIT\n\
             systemctl daemon-reload && systemctl restart storscope.service"
        ))?;
        anyhow::Ok(())
    };
    with("No SMART logs")?;
    let (controller, devices) = drives(rig)?;
    rig.eventually(SOON, |scrape| {
        let smart = scrape.value("storscope_source_up", &[("controller", &controller), ("source", "smart_health")])?;
        let power = scrape.value("storscope_source_up", &[("device", &devices[1]), ("source", "ata_power")])?;
        ensure!((smart, power) == (0.0, 1.0), "smart_health {smart}, ata_power {power}");
        scrape.one("storscope_finding", &[("rule", "source_denied"), ("severity", "warning")])?;
        ensure!(devices.iter().all(|device| reads(scrape, device) > 0.0), "not every drive is read");
        let page = rig.guest().body("/status")?;
        ensure!(page.contains("needs CAP_SYS_ADMIN"), "/status does not name CAP_SYS_ADMIN:\n{page}");
        Ok(())
    })?;
    with("No probes")?;
    rig.eventually(SOON, |scrape| {
        let smart = scrape.value("storscope_source_up", &[("controller", &controller), ("source", "smart_health")])?;
        ensure!(smart == 1.0, "no SMART log");
        scrape.one("storscope_finding", &[("rule", "source_denied")])?;
        ensure!(scrape.all("storscope_probe_reads_total", &[]).is_empty(), "a drive is read");
        Ok(())
    })?;
    with("Neither")?;
    rig.eventually(SOON, |scrape| {
        scrape.value("storscope_disk_reads_completed_total", &[("device", &devices[0])])?;
        scrape.value("storscope_pcie_link_width_lanes", &[("controller", &controller)])?;
        scrape.one("storscope_finding", &[("rule", "source_denied")])?;
        ensure!(scrape.all("storscope_nvme_power_cycles_total", &[]).is_empty(), "a SMART log without rights");
        ensure!(scrape.all("storscope_probe_reads_total", &[]).is_empty(), "a drive is read");
        Ok(())
    })?;
    rig.guest().sh(&format!("rm {DROP_IN} && systemctl daemon-reload && systemctl restart storscope.service"))?;
    works(rig)
}

fn no_denial(scrape: &Scrape) -> Result<()> {
    let down: Vec<_> =
        scrape.all("storscope_source_up", &[]).into_iter().filter(|series| series.value == 0.0).collect();
    ensure!(down.is_empty(), "sources down: {down:?}");
    let denied = scrape.all("storscope_finding", &[("rule", "source_denied")]);
    ensure!(denied.is_empty(), "{denied:?}");
    Ok(())
}

/// Process ids by the documents' names.
fn processes(guest: &Guest) -> Result<BTreeMap<String, String>> {
    let list = guest.sh(&format!("for id in $(cat {GROUP}); do echo $id $(tr '\\0' ' ' </proc/$id/cmdline); done"))?;
    let mut found = BTreeMap::new();
    for line in list.lines() {
        let (id, command) = line.split_once(' ').with_context(|| line.to_owned())?;
        let name = command.trim().strip_prefix("storscope: ").unwrap_or("supervisor");
        ensure!(found.insert(name.to_owned(), id.to_owned()).is_none(), "two processes are {name}:\n{list}");
    }
    Ok(found)
}

/// The capabilities that the table of processes gives to one.
fn documented(process: &str) -> Result<u64> {
    let row = SECURITY.lines().find_map(|line| line.strip_prefix(&format!("| {process} | ")));
    let cell =
        row.and_then(|row| row.split(" |").next()).with_context(|| format!("SECURITY.md has no row {process}"))?;
    let named: Vec<&str> = cell.split(", ").filter(|name| name.starts_with("CAP_")).collect();
    let bit = |name: &&str| {
        let found = CAPABILITIES.iter().find(|(known, _)| known == name);
        found.map(|(_, bit)| 1 << bit).with_context(|| format!("SECURITY.md gives {process} {name}"))
    };
    named.iter().map(bit).sum()
}

fn each_process_holds_what_is_documented(guest: &Guest) -> Result<()> {
    let ids = processes(guest)?;
    let host = guest.sh("readlink /proc/1/ns/net")?;
    for process in PROCESSES {
        let id = ids.get(process).with_context(|| format!("no {process}: {ids:?}"))?;
        let status = guest.sh(&format!("cat /proc/{id}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
            line.map(str::trim).with_context(|| format!("{process}: no {name}"))
        };
        let set = |name| field(name).and_then(|mask| Ok(u64::from_str_radix(mask, 16)?));
        let wanted = documented(process)?;
        for name in ["CapEff", "CapPrm"] {
            ensure!(set(name)? == wanted, "{process}: {name} is {:#x}, documented is {wanted:#x}", set(name)?);
        }
        let most = CAPABILITIES.iter().map(|(_, bit)| 1 << bit).sum::<u64>();
        ensure!(set("CapBnd")? == most, "{process}: CapBnd {:#x}", set("CapBnd")?);
        ensure!(process == "supervisor" || set("CapAmb")? == 0, "{process}: CapAmb {:#x}", set("CapAmb")?);
        ensure!((field("NoNewPrivs")?, field("Seccomp")?) == ("1", "2"), "{process} is not confined:\n{status}");
        let user = field("Uid")?.split('\t').map(str::to_owned).collect::<Vec<_>>();
        let named = guest.sh("id -u storscope")?;
        ensure!(user.iter().all(|user| *user == named), "{process} runs as {user:?}, storscope is {named}");
        let network = guest.sh(&format!("readlink /proc/{id}/ns/net; tail -n +3 /proc/{id}/net/dev | cut -d: -f1"))?;
        let (own, interfaces) = network.split_once('\n').unwrap_or((&network, ""));
        ensure!(own != host && interfaces.trim() == "lo", "{process} is in the network {own} with {interfaces}");
    }
    Ok(())
}

/// Even root could not write, nor read the memory, in the unit's control group.
fn drives_are_only_read(rig: &Rig) -> Result<()> {
    let (controller, devices) = drives(rig)?;
    let inside = |command: &str| rig.guest().sh(&format!("echo $$ >{GROUP}; {command}"));
    for device in devices.iter().chain([&controller]) {
        inside(&format!("exec 3</dev/{device}"))?;
        ensure!(inside(&format!("exec 3>>/dev/{device}")).is_err(), "{device} can be written to");
    }
    for node in ["mem", "kmsg"] {
        ensure!(inside(&format!("exec 3</dev/{node}")).is_err(), "/dev/{node} can be opened");
    }
    Ok(())
}

fn a_restart_refuses_nobody(guest: &Guest) -> Result<()> {
    guest.sh("rm -f /run/asked-enough")?;
    guest.background(ASK, "/run/answers")?;
    let main = || guest.sh("systemctl show -p MainPID --value storscope.service");
    let before = main()?;
    guest.sh("systemctl restart storscope.service; sleep 1; touch /run/asked-enough")?;
    ensure!(main()? != before, "it was not started anew");
    let answers = guest.sh("cat /run/answers")?;
    let wrong: Vec<&str> = answers.lines().filter(|line| !line.contains("200 OK")).collect();
    ensure!(answers.lines().count() > wrong.len(), "nothing is answered:\n{answers}");
    // One that is being answered may be cut off by the end of the server.
    let refused = wrong.iter().any(|line| line.contains("refused"));
    ensure!(!refused && wrong.len() <= 1, "a restart cost more than the answer under way: {wrong:?}");
    Ok(())
}

/// A SATA disk takes no command while a read is out (ACS, NCQ): the collector's question for its power mode is stuck in the
/// kernel, and the collector cannot be killed.
pub(super) fn restart_while_hanging(rig: &Rig) -> Result<()> {
    let guest = rig.guest();
    let (_, [_, device]) = drives(rig)?;
    // At the SCSI layer's time-out the emulator stops answering.
    guest.sh(&format!("echo 600 >/sys/block/{device}/device/timeout"))?;
    let fault = rig.hang(SATA_ROTATING)?;
    rig.eventually(STUCK_WITHIN, |_| {
        let id = processes(&guest)?.remove("collector").context("no collector")?;
        let states = guest.sh(&format!("grep -h ^State /proc/{id}/task/*/status"))?;
        ensure!(states.contains("D (disk sleep)"), "no thread of the collector is stuck: {states}");
        Ok(())
    })?;
    let began = Instant::now();
    guest.sh_within("systemctl restart storscope.service", RESTART_LIMIT)?;
    guest.body("/metrics")?;
    let took = began.elapsed();
    println!("     systemd-hang: restart and first scrape took {:.1} s", took.as_secs_f64());
    ensure!(took < RESTART_LIMIT, "a restart took {took:?}");
    rig.eventually(SOON, |scrape| {
        let former = scrape.value("storscope_agent_former_processes", &[])?;
        ensure!(former == 1.0, "{former} former processes are told of");
        Ok(())
    })?;
    fault.release()?;
    rig.eventually(SOON, |scrape| {
        let former = scrape.value("storscope_agent_former_processes", &[])?;
        ensure!(former == 0.0, "{former} former processes are left");
        Ok(())
    })?;
    works(rig)
}
