//! What starts trims from now on: a unit of systemd or a job of cron, and lines of fstab.

use emmc_port::Stack;
use serde::Serialize;

use super::TrimStatus;

/// A new file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdvisedFile {
    /// Its path, from the root folder.
    pub path: &'static str,
    /// Whether it must be executable.
    pub is_program: bool,
    /// Its content.
    pub text: String,
}

/// A line of fstab with the option `discard`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FstabChange {
    /// The mount point.
    pub point: String,
    /// The options now; absent if fstab has no such line.
    pub options: Option<String>,
    /// The options with `discard`.
    pub with_discard: String,
}

/// What to do for trims from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrimAdvice {
    /// In one sentence.
    pub what: String,
    /// A command that is enough, where the system has a timer already.
    pub command: Option<String>,
    /// New files.
    pub files: Vec<AdvisedFile>,
    /// What to run after they were written.
    pub then: Option<String>,
    /// The other way: discards at each delete.
    pub fstab: Vec<FstabChange>,
    /// Which way, and why.
    pub remarks: Vec<String>,
}

const SERVICE: &str = "[Unit]
Description=Trim filesystems on flash
Documentation=man:emmclab-trim-run(1) man:fstrim(8)
ConditionVirtualization=!container

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'for point in \"$@\"; do fstrim \"$point\"; done' sh POINTS
Nice=19
IOSchedulingClass=idle
";

const TIMER: &str = "[Unit]
Description=Trim filesystems on flash once a week
Documentation=man:fstrim(8)

[Timer]
OnCalendar=weekly
AccuracySec=1h
Persistent=true
RandomizedDelaySec=100min

[Install]
WantedBy=timers.target
";

/// `has_fstrim_timer`: the system ships util-linux's unit.
pub fn trim_advice(status: &TrimStatus, has_systemd: bool, has_fstrim_timer: bool) -> TrimAdvice {
    let needs = |reach: &&super::Reach| {
        reach.mounted_at.is_some() && reach.trimmed_by.is_empty() && !is_read_only(&status.stack, &reach.layer)
    };
    let points: Vec<String> = status.reach.iter().filter(needs).filter_map(|reach| reach.mounted_at.clone()).collect();
    let mut advice = TrimAdvice::default();
    for reach in status.reach.iter().filter(|reach| reach.blocked_by.is_some()) {
        let place = reach.mounted_at.as_deref().unwrap_or(&reach.layer);
        let by = reach.blocked_by.as_deref().unwrap_or_default();
        advice.remarks.push(format!("{place}: first {by} must let discards pass (`emmclab trim status`)"));
    }
    if status.obedience.as_ref().is_some_and(|tested| tested.obeys == Some(false)) {
        advice.remarks.push("this card ignores discards: no timer makes it faster".into());
    }
    if points.is_empty() {
        advice.what = "Nothing to do: everything that is mounted for writing is trimmed by somebody".into();
        return advice;
    }
    advice.fstab = points.iter().map(|point| fstab(&status.stack, point)).collect();
    advice.remarks.push(
        "a weekly trim costs less than the option `discard`, which makes each deletion wait for the card; the option is \
         right where a filesystem is nearly full all the time"
            .into(),
    );
    if has_fstrim_timer {
        advice.what = "Enable the timer that the system has: it trims every filesystem in fstab once a week".into();
        advice.command = Some("systemctl enable --now fstrim.timer".into());
    } else if has_systemd {
        let quoted: Vec<String> = points.iter().map(|point| unit_word(point)).collect();
        advice.what = "Write a unit and its timer, which trims once a week".into();
        let file = |path, text: String| AdvisedFile { path, is_program: false, text };
        advice
            .files
            .push(file("etc/systemd/system/emmclab-trim.service", SERVICE.replace("POINTS", &quoted.join(" "))));
        advice.files.push(file("etc/systemd/system/emmclab-trim.timer", TIMER.into()));
        advice.then = Some("systemctl daemon-reload && systemctl enable --now emmclab-trim.timer".into());
    } else {
        let lines: Vec<String> = points.iter().map(|point| format!("fstrim {}\n", shell_word(point))).collect();
        advice.what = "Write a weekly job of cron".into();
        let text = format!("#!/bin/sh\n# Trims filesystems on flash once a week.\n{}", lines.concat());
        advice.files.push(AdvisedFile { path: "etc/cron.weekly/emmclab-trim", is_program: true, text });
    }
    advice
}

fn is_read_only(stack: &Stack, layer: &str) -> bool {
    let mounted = stack.layer(layer).and_then(|layer| layer.mounted.as_ref());
    mounted.is_some_and(|mounted| mounted.options.iter().any(|option| option == "ro"))
}

fn fstab(stack: &Stack, point: &str) -> FstabChange {
    let mounted = stack.layers.iter().filter_map(|layer| layer.mounted.as_ref()).find(|mounted| mounted.point == point);
    let options = mounted.and_then(|mounted| mounted.fstab_options.clone()).map(|options| options.join(","));
    let with_discard = format!("{},discard", options.as_deref().unwrap_or("defaults"));
    FstabChange { point: point.into(), options, with_discard }
}

/// A word for a shell.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A word for a line of a unit. Source: systemd.service(5), "Command lines": `%`, `$`, quotes and backslashes.
fn unit_word(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}
