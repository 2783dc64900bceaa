//! An NVMe controller.

use super::Big;
use super::device::Place;
use super::source::Source;
use jiff::Timestamp;
use serde::Serialize;
use storscope_model::sample::nvme::{
    CRITICAL_WARNING_FLAGS, DATA_UNIT_BYTES, FirmwareSlots, Identify, SelfTestLog, SmartHealth,
};
use storscope_model::sample::pcie;
use storscope_model::view::{ControllerView, LinkView, View};

#[derive(Serialize)]
pub(super) struct Controller<'v> {
    name: &'v str,
    id: &'v str,
    transport: &'static str,
    model: Option<&'v str>,
    serial: Option<&'v str>,
    firmware: Option<&'v str>,
    cntlid: Option<u32>,
    subsystem_nqn: Option<&'v str>,
    address: Option<&'v str>,
    pci_address: Option<&'v str>,
    numa_node: Option<u32>,
    place: Place<'v>,
    devices: &'v [String],
    first_seen: Option<Timestamp>,
    state: Option<&'v str>,
    suspended: Option<bool>,
    pci_power_state: Option<&'v str>,
    link: Option<Link<'v>>,
    link_changes: u64,
    aer: Option<Vec<Aer<'v>>>,
    aer_correctable_per_minute: Option<f64>,
    smart: Option<Smart>,
    identify: Option<Identity<'v>>,
    error_log: Option<Vec<ErrorEntry>>,
    firmware_slots: Option<Firmware<'v>>,
    self_test: Option<SelfTest>,
    ocp: Option<super::ocp::Ocp>,
    commands: Option<Vec<Command<'v>>>,
    sources: Vec<Source>,
}

#[derive(Serialize)]
struct Link<'v> {
    status: &'static str,
    current: LinkEnd,
    expected: LinkEnd,
    drive_maximum: LinkEnd,
    port: Option<&'v str>,
    bandwidth_bytes_per_second: Option<f64>,
    expected_bandwidth_bytes_per_second: Option<f64>,
    narrow_hop: Option<&'v str>,
}

#[derive(Serialize)]
struct LinkEnd {
    transfers_per_second: Option<u64>,
    width: Option<u8>,
}

impl<'v> Link<'v> {
    fn of(link: &'v LinkView) -> Self {
        let end = |link: pcie::Link| LinkEnd {
            transfers_per_second: link.mega_transfers.map(|mega| u64::from(mega) * 1_000_000),
            width: link.width,
        };
        Self {
            status: link.status.as_str(),
            current: end(link.current),
            expected: end(link.expected),
            drive_maximum: end(link.drive_maximum),
            port: link.port.as_deref(),
            bandwidth_bytes_per_second: link.bandwidth_bytes_per_second,
            expected_bandwidth_bytes_per_second: link.expected_bandwidth_bytes_per_second,
            narrow_hop: link.narrow_hop.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Aer<'v> {
    address: &'v str,
    severity: &'static str,
    error: &'v str,
    count: u64,
}

fn aer(aer: &pcie::Aer) -> Vec<Aer<'_>> {
    aer.functions
        .iter()
        .flat_map(|function| {
            function.counters.iter().map(|counter| Aer {
                address: &function.address,
                severity: counter.severity.as_str(),
                error: &counter.error,
                count: counter.count,
            })
        })
        .collect()
}

#[derive(Serialize)]
struct Smart {
    critical_warning: u8,
    critical_warning_flags: Vec<&'static str>,
    temperature_celsius: Option<i32>,
    sensors_celsius: [Option<i32>; 8],
    available_spare_percent: u8,
    available_spare_threshold_percent: u8,
    percentage_used: u8,
    endurance_group_warning: u8,
    data_read_bytes: Option<Big>,
    data_written_bytes: Option<Big>,
    host_reads: Big,
    host_writes: Big,
    busy_minutes: Big,
    power_cycles: Big,
    power_on_hours: Big,
    unsafe_shutdowns: Big,
    media_errors: Big,
    error_log_entries: Big,
    warning_temperature_minutes: u32,
    critical_temperature_minutes: u32,
    thermal_transitions: [u32; 2],
    thermal_seconds: [u32; 2],
}

impl Smart {
    fn of(page: &SmartHealth) -> Self {
        let flags = (0..).zip(CRITICAL_WARNING_FLAGS);
        let bytes = |units: u128| (units > 0).then(|| Big(units.saturating_mul(DATA_UNIT_BYTES)));
        Self {
            critical_warning: page.critical_warning,
            critical_warning_flags: flags
                .filter(|(bit, _)| page.critical_warning >> bit & 1 == 1)
                .map(|(_, flag)| flag)
                .collect(),
            temperature_celsius: page.temperature_c,
            sensors_celsius: page.sensors_c,
            available_spare_percent: page.available_spare_percent,
            available_spare_threshold_percent: page.available_spare_threshold_percent,
            percentage_used: page.percentage_used,
            endurance_group_warning: page.endurance_group_warning,
            data_read_bytes: bytes(page.data_units_read),
            data_written_bytes: bytes(page.data_units_written),
            host_reads: Big(page.host_reads),
            host_writes: Big(page.host_writes),
            busy_minutes: Big(page.busy_minutes),
            power_cycles: Big(page.power_cycles),
            power_on_hours: Big(page.power_on_hours),
            unsafe_shutdowns: Big(page.unsafe_shutdowns),
            media_errors: Big(page.media_errors),
            error_log_entries: Big(page.error_log_entries),
            warning_temperature_minutes: page.warning_temperature_minutes,
            critical_temperature_minutes: page.critical_temperature_minutes,
            thermal_transitions: page.thermal_transitions,
            thermal_seconds: page.thermal_seconds,
        }
    }
}

#[derive(Serialize)]
struct Identity<'v> {
    vendor_id: u16,
    nvme_version: Option<String>,
    controller_type: u8,
    warning_temperature_celsius: Option<i32>,
    critical_temperature_celsius: Option<i32>,
    total_capacity_bytes: Option<Big>,
    unallocated_capacity_bytes: Option<Big>,
    namespaces: u32,
    power_states: u8,
    error_log_capacity: u16,
    volatile_write_cache: bool,
    autonomous_power: bool,
    longest_exit_latency_us: Option<u64>,
    self_test_supported: bool,
    not_asked: Vec<NotAsked<'v>>,
}

#[derive(Serialize)]
struct NotAsked<'v> {
    page: &'v str,
    reason: &'v str,
}

impl<'v> Identity<'v> {
    fn of(identify: &'v Identify) -> Self {
        let reported = identify.total_capacity_bytes > 0;
        Self {
            vendor_id: identify.vendor_id,
            nvme_version: identify.version.map(|(major, minor, tertiary)| format!("{major}.{minor}.{tertiary}")),
            controller_type: identify.controller_type,
            warning_temperature_celsius: identify.warning_temperature_c,
            critical_temperature_celsius: identify.critical_temperature_c,
            total_capacity_bytes: reported.then_some(Big(identify.total_capacity_bytes)),
            unallocated_capacity_bytes: reported.then_some(Big(identify.unallocated_capacity_bytes)),
            namespaces: identify.namespaces,
            power_states: identify.power_states,
            error_log_capacity: identify.error_log_entries,
            volatile_write_cache: identify.volatile_write_cache,
            autonomous_power: identify.autonomous_power,
            longest_exit_latency_us: identify.longest_exit_latency_us,
            self_test_supported: identify.self_test_supported,
            not_asked: identify.not_asked.iter().map(|(page, reason)| NotAsked { page, reason }).collect(),
        }
    }
}

#[derive(Serialize)]
struct ErrorEntry {
    count: u64,
    queue: u16,
    command_id: u16,
    status: u16,
    lba: u64,
    nsid: u32,
    opcode: Option<u8>,
}

#[derive(Serialize)]
struct Firmware<'v> {
    active_slot: u8,
    next_slot: Option<u8>,
    revisions: [Option<&'v str>; 7],
}

impl<'v> Firmware<'v> {
    fn of(slots: &'v FirmwareSlots) -> Self {
        Self {
            active_slot: slots.active,
            next_slot: slots.next,
            revisions: slots.revisions.each_ref().map(|revision| revision.as_deref()),
        }
    }
}

#[derive(Serialize)]
struct SelfTest {
    current: u8,
    percent: u8,
    results: Vec<SelfTestResult>,
}

#[derive(Serialize)]
struct SelfTestResult {
    code: u8,
    result: u8,
    power_on_hours: u64,
    segment: Option<u8>,
    lba: Option<u64>,
    nsid: Option<u32>,
}

impl SelfTest {
    fn of(log: &SelfTestLog) -> Self {
        let result = |result: &storscope_model::sample::nvme::SelfTestResult| SelfTestResult {
            code: result.code,
            result: result.result,
            power_on_hours: result.power_on_hours,
            segment: result.segment,
            lba: result.lba,
            nsid: result.nsid,
        };
        Self { current: log.current, percent: log.percent, results: log.results.iter().map(result).collect() }
    }
}

#[derive(Serialize)]
struct Command<'v> {
    command: &'v str,
    outcome: &'static str,
    count: u64,
    seconds: f64,
}

fn errors(log: &storscope_model::sample::nvme::ErrorLog) -> Vec<ErrorEntry> {
    log.entries
        .iter()
        .map(|entry| ErrorEntry {
            count: entry.count,
            queue: entry.queue,
            command_id: entry.command_id,
            status: entry.status,
            lba: entry.lba,
            nsid: entry.nsid,
            opcode: entry.opcode,
        })
        .collect()
}

fn commands(commands: &storscope_model::sample::nvme::DriveCommands) -> Vec<Command<'_>> {
    commands
        .counts
        .iter()
        .map(|row| Command {
            command: &row.command,
            outcome: row.outcome.as_str(),
            count: row.count,
            seconds: std::time::Duration::from_nanos(row.time_ns).as_secs_f64(),
        })
        .collect()
}

impl<'v> Controller<'v> {
    pub(super) fn of(view: &'v View, of: &'v ControllerView) -> Self {
        let controller = &of.state.controller;
        let power = of.state.power.fresh();
        Self {
            name: &controller.name,
            id: &controller.id.0,
            transport: controller.transport.as_str(),
            model: controller.model.as_deref(),
            serial: controller.serial.as_deref(),
            firmware: controller.firmware.as_deref(),
            cntlid: controller.cntlid,
            subsystem_nqn: controller.subsystem_nqn.as_deref(),
            address: controller.address.as_deref(),
            pci_address: controller.pci_address.as_deref(),
            numa_node: controller.numa_node,
            place: Place::of(&controller.place),
            devices: &of.devices,
            first_seen: super::time(view, of.state.appeared),
            state: of.state.state.fresh().map(|state| state.state.as_str()),
            suspended: power.map(|power| power.suspended),
            pci_power_state: power.and_then(|power| power.pci_power_state.as_deref()),
            link: of.link.as_ref().map(Link::of),
            link_changes: of.link_changes,
            aer: of.state.aer.fresh().map(aer),
            aer_correctable_per_minute: of.aer_correctable_per_minute,
            smart: of.state.smart.fresh().map(Smart::of),
            identify: of.state.identify.fresh().map(Identity::of),
            error_log: of.state.error_log.fresh().map(errors),
            firmware_slots: of.state.firmware.fresh().map(Firmware::of),
            self_test: of.state.self_test.fresh().map(SelfTest::of),
            ocp: of.state.ocp.fresh().map(super::ocp::Ocp::of),
            commands: of.state.commands.fresh().map(commands),
            sources: Source::all(view, of.state.sources()),
        }
    }
}
