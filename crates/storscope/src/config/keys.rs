//! The one table of configuration keys.

use super::value::{self, spell_choice, spell_duration, spell_text};
use super::{Config, EngineChoice, LogLevel, Pattern};
use std::time::Duration;
use storscope_model::privacy::Serials;
use toml::de::DeValue;

/// One key.
pub(crate) struct Key {
    /// Dotted path, `table.key` or `key`.
    pub(crate) path: &'static str,
    /// What may be written.
    pub(crate) form: &'static str,
    /// What it does.
    pub(crate) doc: &'static str,
    /// Takes a written value in, or says what is wrong with it.
    pub(crate) set: fn(&mut Config, &DeValue<'_>) -> Result<(), String>,
    /// The value as TOML.
    pub(crate) get: fn(&Config) -> String,
}

const ENGINES: [(&str, EngineChoice); 3] =
    [("auto", EngineChoice::Auto), ("io_uring", EngineChoice::IoUring), ("pread", EngineChoice::Pread)];

const LEVELS: [(&str, LogLevel); 4] =
    [("error", LogLevel::Error), ("warn", LogLevel::Warn), ("info", LogLevel::Info), ("debug", LogLevel::Debug)];

const SERIALS: [(&str, Serials); 3] = [("full", Serials::Full), ("hash", Serials::Hash), ("none", Serials::None)];

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

macro_rules! period {
    ($path:literal, $field:ident, $least:expr, $most:expr, $doc:literal) => {
        Key {
            path: $path,
            form: "duration",
            doc: $doc,
            set: |config, given| value::duration(given, $least, $most).map(|period| config.periods.$field = period),
            get: |config| spell_text(&spell_duration(config.periods.$field)),
        }
    };
}

macro_rules! pattern {
    ($path:literal, $field:ident, $doc:literal) => {
        Key {
            path: $path,
            form: "regular expression; empty for none",
            doc: $doc,
            set: |config, given| value::pattern(given).map(|pattern| config.devices.$field = pattern),
            get: |config| spell_pattern(config.devices.$field.as_ref()),
        }
    };
}

fn spell_pattern(pattern: Option<&Pattern>) -> String {
    spell_text(pattern.map_or("", |pattern| pattern.0.as_str()))
}

/// Every key, tables together.
pub(crate) const KEYS: &[Key] = &[
    Key {
        path: "listen",
        form: "array of addresses",
        doc: "Addresses that HTTP listens on. `:10210` is every address of the host.",
        set: |config, given| value::addresses(given).map(|addresses| config.listen = addresses),
        get: |config| {
            let all: Vec<String> = config.listen.iter().map(|address| spell_text(&address.to_string())).collect();
            format!("[{}]", all.join(", "))
        },
    },
    Key {
        path: "state_dir",
        form: "absolute path; empty for none",
        doc: "Directory in which findings and refused log pages are remembered over restarts. Without one they are kept in memory only. It is locked for one agent; another on it says so and keeps its own in memory.",
        set: |config, given| value::directory(given).map(|directory| config.state_dir = directory),
        get: |config| {
            spell_text(&config.state_dir.as_ref().map_or_else(String::new, |path| path.display().to_string()))
        },
    },
    pattern!(
        "devices.include",
        include,
        "Block devices added to the default choice, by kernel name. Every expression is for the whole name, as if between `^` and `$`: `loop[0-9]+`, not `loop`. The default is whole disks: no partitions, ram, zram, loop, sr, fd, dm or md. A loop, nbd, zram, dm or md device with nothing attached is no drive until it has a size."
    ),
    pattern!("devices.exclude", exclude, "Block devices left out. Wins over `include` and `only`."),
    pattern!("devices.only", only, "Only these block devices, whatever the default choice is."),
    period!(
        "periods.tick",
        tick,
        SECOND,
        Duration::from_secs(60),
        "Counters of /proc/diskstats, pressure, CPU, and the analysis."
    ),
    period!("periods.link", link, SECOND, HOUR, "PCIe link and error counters, power status, controller state."),
    period!("periods.queue", queue, SECOND, HOUR, "Queue settings; they are also read on a uevent."),
    period!("periods.smart", smart, Duration::from_secs(5), DAY, "NVMe SMART / health log page, and ATA power mode."),
    period!("periods.ocp", ocp, Duration::from_secs(30), DAY, "OCP extended SMART log page."),
    period!(
        "periods.slow",
        slow,
        Duration::from_secs(60),
        DAY,
        "Identify, firmware slots, self-test, namespace utilisation; the error log as long as its count stands still."
    ),
    period!(
        "periods.rescan",
        rescan,
        Duration::from_secs(5),
        HOUR,
        "Scan for devices and for what they carry; both also happen on a uevent."
    ),
    Key {
        path: "probe.enabled",
        form: "boolean",
        doc: "Time short direct reads of every device.",
        set: |config, given| value::boolean(given).map(|enabled| config.probe.enabled = enabled),
        get: |config| config.probe.enabled.to_string(),
    },
    Key {
        path: "probe.engine",
        form: "\"auto\", \"io_uring\" or \"pread\"",
        doc: "What reads. `auto` is io_uring, and pread where the kernel forbids io_uring.",
        set: |config, given| value::choice(given, &ENGINES).map(|engine| config.probe.engine = engine),
        get: |config| spell_choice(&config.probe.engine, &ENGINES),
    },
    Key {
        path: "probe.reads_per_second",
        form: "1 to 64",
        doc: "Reads a second a device, on average. A rotating disk gets fewer, and an idle device is probed ever more rarely.",
        set: |config, given| {
            value::whole(given, 1, 64).map(|rate| config.probe.reads_per_second = u16::try_from(rate).unwrap_or(64))
        },
        get: |config| config.probe.reads_per_second.to_string(),
    },
    Key {
        path: "probe.burst",
        form: "1 to 64",
        doc: "Reads a burst. Bursts leave the device alone in between, so that it may sleep.",
        set: |config, given| {
            value::whole(given, 1, 64).map(|burst| config.probe.burst = u16::try_from(burst).unwrap_or(64))
        },
        get: |config| config.probe.burst.to_string(),
    },
    Key {
        path: "probe.max_share",
        form: "above 0, at most 0.05",
        doc: "Most of a device's time that probes may take, measured.",
        set: |config, given| value::share(given, 0.05).map(|share| config.probe.max_share = share),
        get: |config| config.probe.max_share.to_string(),
    },
    Key {
        path: "probe.deadline",
        form: "duration",
        doc: "When an outstanding read is called stalled. It is never repeated meanwhile.",
        set: |config, given| {
            value::duration(given, SECOND, Duration::from_secs(600)).map(|limit| config.probe.deadline = limit)
        },
        get: |config| spell_text(&spell_duration(config.probe.deadline)),
    },
    Key {
        path: "http.max_connections",
        form: "1 to 10000",
        doc: "Connections at once. When all are taken, one that idles makes way for a new one; when none does, the new one is answered 503 and closed. An address of another host has at most half of them, and then 429.",
        set: |config, given| {
            value::whole(given, 1, 10_000)
                .map(|most| config.http.max_connections = usize::try_from(most).unwrap_or(10_000))
        },
        get: |config| config.http.max_connections.to_string(),
    },
    Key {
        path: "http.max_header_bytes",
        form: "8192 to 1048576",
        doc: "Longest request head in bytes.",
        set: |config, given| {
            value::whole(given, 8192, 1 << 20)
                .map(|most| config.http.max_header_bytes = usize::try_from(most).unwrap_or(1 << 20))
        },
        get: |config| config.http.max_header_bytes.to_string(),
    },
    Key {
        path: "http.timeout",
        form: "duration",
        doc: "Longest time a client may take to send a request head, and to take the answer.",
        set: |config, given| {
            value::duration(given, SECOND, Duration::from_secs(300)).map(|limit| config.http.timeout = limit)
        },
        get: |config| spell_text(&spell_duration(config.http.timeout)),
    },
    Key {
        path: "http.keep_alive",
        form: "duration",
        doc: "Longest time a connection may idle between two requests: more than the time between two scrapes saves the next one a connection.",
        set: |config, given| value::duration(given, SECOND, HOUR).map(|limit| config.http.keep_alive = limit),
        get: |config| spell_text(&spell_duration(config.http.keep_alive)),
    },
    Key {
        path: "processes.longest_pause",
        form: "duration",
        doc: "Longest pause before a process of the agent that ended is started again. Pauses begin at 100 ms and double.",
        set: |config, given| {
            value::duration(given, Duration::from_millis(100), Duration::from_secs(600))
                .map(|longest| config.longest_pause = longest)
        },
        get: |config| spell_text(&spell_duration(config.longest_pause)),
    },
    Key {
        path: "privacy.serials",
        form: "\"full\", \"hash\" or \"none\"",
        doc: "What `/metrics` and `/status` tell of serial numbers, world-wide ids and identities made of them: as they are, a pseudonym that is the same everywhere (no secret to who knows the number), or nothing. The state directory holds them as they are.",
        set: |config, given| value::choice(given, &SERIALS).map(|serials| config.serials = serials),
        get: |config| spell_choice(&config.serials, &SERIALS),
    },
    Key {
        path: "log.level",
        form: "\"error\", \"warn\", \"info\" or \"debug\"",
        doc: "Least severe level that is logged. `info` logs transitions, never every tick.",
        set: |config, given| value::choice(given, &LEVELS).map(|level| config.log_level = level),
        get: |config| spell_choice(&config.log_level, &LEVELS),
    },
];
