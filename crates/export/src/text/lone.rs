//! Controllers that have no block device: what they say of themselves.

use super::devices::{DASH, condition, link};
use super::{line, number};
use storscope_model::view::ControllerView;

/// The cells of the table: no I/O, but temperature, wear and link where they are fresh.
pub(super) fn cells(controller: &ControllerView) -> Box<[String; 14]> {
    let mut cells: Box<[String; 14]> = Box::new(std::array::from_fn(|_| DASH.to_owned()));
    let [name, .., temperature, used, way] = cells.as_mut();
    *name = line::clean(&controller.state.controller.name).into_owned();
    if let Some(page) = controller.state.smart.fresh() {
        (*temperature, *used) = condition(page);
    }
    if let Some(known) = &controller.link {
        *way = link(known);
    }
    cells
}

/// One line on its identity.
pub(super) fn note(controller: &ControllerView) -> String {
    let of = &controller.state.controller;
    let identify = controller.state.identify.fresh();
    let capacity = identify.map(|identify| identify.total_capacity_bytes).filter(|bytes| *bytes > 0);
    let version = identify.and_then(|identify| identify.version);
    let parts = [
        of.model.clone(),
        of.serial.as_ref().map(|serial| format!("S/N {serial}")),
        of.firmware.as_ref().map(|firmware| format!("fw {firmware}")),
        capacity.map(number::capacity),
        version.map(|(major, minor, tertiary)| format!("NVMe {major}.{minor}.{tertiary}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("no block device; {}", parts.join(", "))
}
