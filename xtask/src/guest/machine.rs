//! One run of the emulated machine: from start to power-off, or until it is killed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use emmc_lab::folder::last_lines;
use emmc_lab::guest::{INIT, LIBRARY, environment};

use crate::guest::cpio::Archive;
use crate::guest::image::MAPPER;
use crate::guest::rig::Rig;

/// The configuration of a machine.
pub(crate) struct Setup<'a> {
    pub(crate) rig: &'a Rig,
    /// A folder for this run, which exists.
    pub(crate) folder: &'a Path,
    pub(crate) script: &'a str,
    /// Environment variables of the script.
    pub(crate) environment: &'a [(String, String)],
    /// Programs for the script in /guest, by name.
    pub(crate) programs: &'a [(&'a str, PathBuf)],
    pub(crate) memory_mib: u32,
    pub(crate) processors: u8,
    /// Further arguments for QEMU.
    pub(crate) qemu: &'a [OsString],
    pub(crate) clock: Clock<'a>,
    /// What is shown of the kernel's and the script's output.
    pub(crate) show: Show,
}

/// What moves the machine's time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock<'a> {
    /// The host machine's clock.
    Wall,
    /// The guest's instructions, of 2^`shift` ns each. The card is inside the machine, in a plugin: its path and its
    /// arguments.
    Virtual { shift: u8, plugin: &'a Path, arguments: &'a str },
}

/// What is shown while a machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// Nothing; the caller looks at the outcome.
    Nothing,
    /// The script's output.
    Output,
    /// That, and the kernel's console on standard error.
    Console,
}

/// The result.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The script's exit status; absent if the machine ended before the script.
    pub(crate) status: Option<u8>,
    /// What the script printed.
    pub(crate) output: String,
    /// Of all register accesses with their instants, if the card is inside the machine.
    pub(crate) digest: Option<String>,
}

/// A running machine; it is killed when it is dropped.
pub(crate) struct Machine {
    child: Child,
    control: BufReader<UnixStream>,
    output: Option<JoinHandle<Vec<u8>>>,
    folder: PathBuf,
    /// The program, and the file in the folder with its messages.
    program: (&'static str, &'static str),
    /// A folder that the guest sees, where each answer is a file too, and the number of answers.
    answers: Option<(PathBuf, u32)>,
    /// When it was started, if its clock is to be the host's.
    wall: Option<Instant>,
    status: Option<u8>,
}

impl Machine {
    /// Starts it.
    pub(crate) fn start(setup: &Setup) -> anyhow::Result<Self> {
        let initramfs = setup.folder.join("initramfs");
        with_script(setup, &initramfs)?;
        let (ours, theirs) = UnixStream::pair().context("a channel to the machine")?;
        let mut command = setup.rig.qemu.command()?;
        arguments(&mut command, setup, &initramfs);
        // Its standard input is the control channel: no other process has that end, so it is closed when QEMU ends.
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::piped()).stderr(
            if setup.show == Show::Console {
                Stdio::inherit()
            } else {
                Stdio::from(File::create(setup.folder.join("qemu"))?)
            },
        );
        let wall = matches!(setup.clock, Clock::Wall).then(Instant::now);
        let mut child = command.spawn().context("cannot start QEMU")?;
        drop(command);
        let stdout = child.stdout.take().context("QEMU's output")?;
        let show = setup.show != Show::Nothing;
        let output = match setup.clock {
            Clock::Wall => std::thread::spawn(move || copy(stdout, show)),
            Clock::Virtual { .. } => {
                let path = setup.folder.join("output");
                std::thread::spawn(move || follow(&path, stdout, show))
            }
        };
        let control = BufReader::new(ours);
        let (folder, program) = (setup.folder.to_path_buf(), ("QEMU", "qemu"));
        Ok(Self { child, control, output: Some(output), folder, program, answers: None, wall, status: None })
    }

    /// A machine that runs already: its control channel, and the folder that it shares with its host, where its script
    /// prints to the file `output` and finds answers. Its standard output is a pipe on which nothing of interest comes.
    pub(crate) fn of(
        mut child: Child,
        control: UnixStream,
        shared: &Path,
        folder: &Path,
        program: (&'static str, &'static str),
        show: bool,
    ) -> anyhow::Result<Self> {
        let stdout = child.stdout.take().context("the machine's output")?;
        let path = shared.join("output");
        let output = std::thread::spawn(move || follow(&path, stdout, show));
        let (control, folder) = (BufReader::new(control), folder.to_path_buf());
        let answers = Some((shared.to_path_buf(), 0));
        Ok(Self { child, control, output: Some(output), folder, program, answers, wall: None, status: None })
    }

    /// The next line from the guest; none when it is off.
    pub(crate) fn told(&mut self) -> anyhow::Result<Option<String>> {
        let mut line = String::new();
        let length = self.control.read_line(&mut line).context("the machine's control channel")?;
        if length == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_string();
        if let Some(status) = line.strip_prefix("exit ") {
            self.status = status.parse().ok();
        }
        let uptime = line.strip_prefix("boot ").or_else(|| line.strip_prefix("ran "));
        if let (Some(start), Some(Ok(guest))) = (self.wall, uptime.map(str::parse)) {
            compare_clocks(guest, start.elapsed().as_secs_f64())?;
        }
        Ok(Some(line))
    }

    /// Sends a line to the guest.
    pub(crate) fn tell(&mut self, text: &str) -> anyhow::Result<()> {
        if let Some((shared, count)) = &mut self.answers {
            *count += 1;
            fs::write(shared.join(format!("answer-{count}")), text)?;
        }
        self.control.get_mut().write_all(text.as_bytes()).context("the machine's control channel")
    }

    /// Waits until it is off.
    pub(crate) fn finish(mut self) -> anyhow::Result<Outcome> {
        while self.told()?.is_some() {}
        let exit = self.child.wait().with_context(|| format!("waiting for {}", self.program.0))?;
        let output = self.output();
        if self.status.is_none() && !exit.success() {
            bail!("{} failed: {exit}: {}", self.program.0, last_lines(&self.folder.join(self.program.1)));
        }
        Ok(Outcome { status: self.status, output, digest: None })
    }

    /// Kills it: the guest's memory is lost. Answers also the whole lines that it had sent and nobody had read.
    pub(crate) fn kill(mut self) -> anyhow::Result<(Outcome, Vec<String>)> {
        self.child.kill().context("killing QEMU")?;
        self.child.wait().context("waiting for QEMU")?;
        let mut rest = Vec::new();
        self.control.read_to_end(&mut rest).context("the machine's control channel")?;
        let whole = rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let unread = String::from_utf8_lossy(&rest[..whole]).lines().map(|line| line.trim_end().to_string()).collect();
        Ok((Outcome { status: None, output: self.output(), digest: None }, unread))
    }

    fn output(&mut self) -> String {
        let bytes = self.output.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks that the guest's clock is the host's: times of both since the guest was started, in s.
///
/// Errors: the guest's runs away. It cannot be late: the guest's begins after the host's.
fn compare_clocks(guest: f64, host: f64) -> anyhow::Result<()> {
    const TOLERATED: f64 = 1.1;
    ensure!(
        guest <= host * TOLERATED,
        "the guest's clock runs away: {guest:.2} s have passed there and {host:.2} s here; every time that it measures \
         is wrong, so try again, or use --clock virtual"
    );
    Ok(())
}

fn arguments(command: &mut Command, setup: &Setup, initramfs: &Path) {
    let memory = setup.memory_mib;
    match setup.clock {
        Clock::Wall => {
            // The card's server maps the guest's memory: it must be shared.
            command.args(["-machine", "q35,accel=tcg,memory-backend=memory", "-cpu", "max"]);
            command.arg("-object").arg(format!("memory-backend-memfd,id=memory,size={memory}M,share=on"));
        }
        Clock::Virtual { shift, plugin, arguments } => {
            // Nothing that comes from the host's clock or its random numbers.
            command.args(["-machine", "q35,accel=tcg", "-cpu", "max,-rdrand,-rdseed"]);
            command.args(["-rtc", "base=2024-01-01T00:00:00,clock=vm", "-seed", "1"]);
            command.arg("-icount").arg(format!("shift={shift},sleep=off"));
            command.arg("-plugin").arg(format!("{},{arguments}", plugin.display()));
            command.args(["-device", "emmclab-sdhci"]);
        }
    }
    command.arg("-smp").arg(setup.processors.to_string()).arg("-m").arg(format!("{memory}M"));
    // SeaBIOS would look for a card itself, which takes two more seconds.
    command.args(["-bios", "qboot.rom"]);
    command.args(["-no-user-config", "-nodefaults", "-no-reboot", "-display", "none"]);
    command.arg("-kernel").arg(&setup.rig.kernel).arg("-initrd").arg(initramfs);
    let quiet = if setup.show == Show::Console { "" } else { " quiet" };
    let random = match setup.clock {
        Clock::Wall => "random.trust_cpu=on",
        Clock::Virtual { .. } => "norandmaps",
    };
    command
        .arg("-append")
        .arg(format!("console=ttyS0 panic=-1 tsc=reliable no_timer_check nokaslr mitigations=off {random}{quiet}"));
    let console = match setup.show {
        Show::Console => "file:/proc/self/fd/2".into(),
        _ => format!("file:{}", setup.folder.join("console").display()),
    };
    command.arg("-serial").arg(console);
    let files = setup.folder.join("files.tar");
    match setup.clock {
        Clock::Wall => {
            // Without an eventfd the processor's own thread takes what the guest has written, before its next
            // instruction: after a kill nothing that the guest had reported is missing.
            command.args(["-device", "virtio-serial-pci,max_ports=4,ioeventfd=off"]);
            let files = format!("file,id=files,path={}", files.display());
            for (name, backend) in [
                ("control", "socket,id=control,fd=0"),
                ("output", "file,id=output,path=/proc/self/fd/1"),
                ("files", &files),
            ] {
                command.arg("-chardev").arg(backend);
                command.arg("-device").arg(format!("virtserialport,chardev={name},name=guest.{name}"));
            }
        }
        Clock::Virtual { .. } => {
            // Serial ports to files, which take every byte at once; the control channel is the card's mailbox.
            let output = setup.folder.join("output");
            for file in [output, files] {
                command.arg("-serial").arg(format!("file:{}", file.display()));
            }
        }
    }
    command.args(setup.qemu);
}

/// The first file system, followed by an archive for this run: later files replace earlier ones.
fn with_script(setup: &Setup, to: &Path) -> anyhow::Result<()> {
    let mut archive = Archive::default();
    archive.file("init", true, INIT.as_bytes());
    archive.file("guest/library.sh", false, LIBRARY.as_bytes());
    archive.file("guest/script", false, setup.script.as_bytes());
    archive.file("guest/environment", false, environment(setup.environment).as_bytes());
    for (name, path) in setup.programs {
        let program = fs::read(path).with_context(|| path.display().to_string())?;
        archive.file(&format!("guest/{name}"), true, &program);
    }
    append(&setup.rig.initramfs, archive, to)?;
    if MAPPER.iter().any(|program| setup.script.contains(program)) {
        let mapper = fs::read(&setup.rig.mapper).with_context(|| setup.rig.mapper.display().to_string())?;
        File::options().append(true).open(to)?.write_all(&mapper)?;
    }
    Ok(())
}

/// A first file system followed by an archive.
pub(crate) fn append(from: &Path, archive: Archive, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    let mut file = File::options().append(true).open(to)?;
    file.write_all(&archive.finish()).with_context(|| to.display().to_string())
}

fn copy(mut from: impl Read, show: bool) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    // An error here means that the machine has ended, which `finish` reports.
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        all.extend_from_slice(&buffer[..length]);
        if show {
            let _ = io::stdout().write_all(&buffer[..length]).and_then(|()| io::stdout().flush());
        }
    }
    all
}

/// Copies a file that grows until the machine's own output, which is empty, has ended.
fn follow(path: &Path, mut ends: impl Read + Send + 'static, show: bool) -> Vec<u8> {
    let ended = std::thread::spawn(move || drop(ends.read_to_end(&mut Vec::new())));
    let mut all = Vec::new();
    loop {
        let last = ended.is_finished();
        let mut new = Vec::new();
        // The file comes into being with the machine.
        if let Ok(mut file) = File::open(path) {
            let _ = file.seek(SeekFrom::Start(all.len() as u64)).and_then(|_| file.read_to_end(&mut new));
        }
        if show && !new.is_empty() {
            let _ = io::stdout().write_all(&new).and_then(|()| io::stdout().flush());
        }
        all.append(&mut new);
        if last {
            return all;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_runs_away_is_an_error() {
        assert!(compare_clocks(1.9, 2.0).is_ok());
        assert!(compare_clocks(1.9, 600.0).is_ok(), "the host is busy");
        let error = compare_clocks(40.0, 2.0).unwrap_err().to_string();
        assert!(error.contains("40.00 s have passed there and 2.00 s here"), "{error}");
    }
}
