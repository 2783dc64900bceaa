//! `/status` for a person: one screen, worst first, nothing shown as fresh that is not.

mod devices;
mod findings;
mod foot;
mod head;
mod line;
mod lone;
mod notes;
mod number;
mod unprobed;

pub(crate) use head::drives;
use line::Paint;
use storscope_model::view::{ControllerView, DeviceView, View};

/// Columns of the page.
pub const WIDTH: usize = 100;

/// Narrowest page: below, the table does not fit.
pub const MIN_WIDTH: usize = 80;

/// Most rows of the table that are shown unless all are asked for.
pub const MAX_ROWS: usize = 64;

/// How the page is to look.
#[derive(Debug, Clone)]
pub struct Options {
    /// ANSI colours, for a terminal.
    pub colour: bool,
    /// Columns; at least [`MIN_WIDTH`] are taken.
    pub width: usize,
    /// Only this device, or what hangs on this controller, by kernel name, with its sources in full.
    pub device: Option<String>,
    /// Every row, however many.
    pub all: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { colour: false, width: WIDTH, device: None, all: false }
    }
}

/// The page that is being written.
struct Page<'v> {
    view: &'v View,
    options: &'v Options,
    paint: Paint,
    width: usize,
    out: String,
}

impl<'v> Page<'v> {
    /// Writes one line; blanks at its end are dropped.
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn blank(&mut self) {
        self.out.push('\n');
    }

    /// Writes `text` behind `head`, wrapped, further lines indented by `indent`.
    fn wrapped(&mut self, head: &str, text: &str, indent: usize) {
        let room = self.width.saturating_sub(indent);
        for (number, piece) in line::wrap(text, room).iter().enumerate() {
            let start = if number == 0 { head } else { "" };
            let line = format!("{}{piece}", line::pad(start, indent));
            self.line(&line);
        }
    }

    /// The controllers without a block device, as far as they are asked for.
    fn lone(&self) -> impl Iterator<Item = &'v ControllerView> {
        let (view, asked) = (self.view, self.options.device.as_ref());
        view.controllers
            .iter()
            .filter(move |of| of.devices.is_empty() && asked.is_none_or(|name| *name == of.state.controller.name))
    }

    fn shown(&self, device: &DeviceView) -> bool {
        let named = |name: &String| *name == device.state.device.name || device.controllers.contains(name);
        self.options.device.as_ref().is_none_or(named)
    }
}

/// The page as text. Foreign text is made printable: no escape sequence, line feed or text direction gets through.
pub fn render(view: &View, options: &Options) -> String {
    let paint = Paint { colour: options.colour };
    let width = options.width.max(MIN_WIDTH);
    let mut page = Page { view, options, paint, width, out: String::new() };
    head::write(&mut page);
    findings::write(&mut page);
    devices::write(&mut page);
    foot::write(&mut page);
    page.out
}
