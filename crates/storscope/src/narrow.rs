//! A view narrowed to one drive.

use storscope_model::view::{ControllerView, DeviceView, View};

/// True when `name` is the kernel name of a device or controller in `view`.
pub(crate) fn knows(view: &View, name: &str) -> bool {
    view.devices.iter().any(|device| device_name(device) == name)
        || view.controllers.iter().any(|controller| controller_name(controller) == name)
}

/// `view` with only the device or controller `name`, what hangs together with it, and the findings about them. The
/// verdict stays that of the host.
pub(crate) fn to_device(view: &View, name: &str) -> View {
    let mut out = view.clone();
    out.devices.retain(|device| device_name(device) == name || device.controllers.iter().any(|one| one == name));
    let wanted = |controller: &ControllerView| {
        controller_name(controller) == name || controller.devices.iter().any(|device| device == name)
    };
    out.controllers.retain(wanted);
    let devices: Vec<&str> = out.devices.iter().map(device_name).collect();
    let controllers: Vec<&str> = out.controllers.iter().map(controller_name).collect();
    let about = |device: &Option<String>, controller: &Option<String>| {
        device.as_deref().is_some_and(|device| devices.contains(&device))
            || controller.as_deref().is_some_and(|controller| controllers.contains(&controller))
    };
    let (findings, closed) = (&view.findings, &view.closed);
    out.findings = findings.iter().filter(|found| about(&found.device, &found.controller)).cloned().collect();
    out.closed = closed.iter().filter(|found| about(&found.device, &found.controller)).cloned().collect();
    out
}

fn device_name(device: &DeviceView) -> &str {
    &device.state.device.name
}

fn controller_name(controller: &ControllerView) -> &str {
    &controller.state.controller.name
}
