//! Devices and controllers for tests.

use storscope_model::device::{Controller, Device, Place, Transport};
use storscope_model::identity::{ControllerId, DeviceId};

pub(crate) fn device(name: &str, transport: Transport) -> Device {
    Device {
        id: DeviceId(name.to_owned()),
        name: name.to_owned(),
        devnum: None,
        transport,
        vendor: None,
        model: None,
        serial: None,
        firmware: None,
        wwid: None,
        size_bytes: Some(1 << 40),
        logical_block_bytes: Some(512),
        rotational: None,
        removable: None,
        read_only: None,
        zoned: None,
        pci_address: None,
        numa_node: None,
        place: Place::default(),
        partition_of: None,
        nvme: None,
    }
}

pub(crate) fn controller(name: &str) -> Controller {
    Controller {
        id: ControllerId(name.to_owned()),
        name: name.to_owned(),
        transport: Transport::NvmePcie,
        model: None,
        serial: None,
        firmware: None,
        cntlid: None,
        subsystem_nqn: None,
        address: None,
        pci_address: None,
        numa_node: None,
        place: Place::default(),
    }
}
