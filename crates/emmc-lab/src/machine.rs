//! The kernel's process.
//!
//! Every name that it gets is relative to the run's folder: no parameter differs between runs, from which the kernel
//! makes random numbers.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::LabError;
use crate::folder::last_lines;
use crate::guest::HOST_FOLDER;
use crate::kernel::{INITRAMFS, Kernel};

/// The server's folder with the sockets of clock and card, in the run's folder.
pub const SERVER_FOLDER: &str = "uml";
/// The file of the kernel's messages, in the run's folder.
pub const CONSOLE: &str = "console";
/// The socket of the guest's mailbox, in the run's folder.
const MAILBOX: &str = "mailbox";
/// How often it is looked whether the kernel has connected.
const LOOK: Duration = Duration::from_millis(2);

/// What a machine is started with.
#[derive(Clone, Copy, Debug)]
pub struct MachineSetup<'a> {
    /// Kernel and first file system.
    pub kernel: &'a Kernel,
    /// The run's folder, laid out by [`crate::guest::lay_out`]. The card's server has its sockets there, in
    /// [`SERVER_FOLDER`].
    pub folder: &'a Path,
    /// Its memory. Unit: MiB.
    pub memory_mib: u32,
    /// Further parameters of the kernel.
    pub parameters: &'a [OsString],
}

/// Where the guest's lines arrive: the card's server connects to it when the kernel has found its clock.
#[derive(Debug)]
pub struct Mailbox {
    listener: UnixListener,
    /// Its socket.
    pub path: PathBuf,
}

impl Mailbox {
    /// Listens in the run's folder.
    ///
    /// Errors: the system's.
    pub fn bind(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join(MAILBOX);
        let listener = UnixListener::bind(&path).map_err(LabError::file(&path))?;
        Ok(Self { listener, path })
    }

    /// The server's connection on behalf of the guest.
    ///
    /// Errors: the kernel has ended before.
    pub fn accept(&self, machine: &mut Child) -> Result<UnixStream, LabError> {
        let failed = || LabError::system("the guest's mailbox");
        self.listener.set_nonblocking(true).map_err(failed())?;
        loop {
            match self.listener.accept() {
                Ok((control, _)) => {
                    control.set_nonblocking(false).map_err(failed())?;
                    return Ok(control);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed()(error)),
            }
            if let Some(status) = machine.try_wait().map_err(LabError::system("waiting for the kernel"))? {
                let console = last_lines(&self.path.with_file_name(CONSOLE)).replace('\n', "; ");
                return Err(LabError::EndedAtOnce { status: status.to_string(), console });
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Starts the kernel. Its standard output is a pipe that closes when it ends.
///
/// Errors: the system's.
pub fn start(setup: &MachineSetup) -> Result<Child, LabError> {
    let console = setup.folder.join(CONSOLE);
    let initramfs = setup.folder.join(INITRAMFS);
    match symlink(&setup.kernel.initramfs, &initramfs) {
        // It was started here before.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made.map_err(LabError::file(&initramfs))?,
    }
    // The layout of the kernel's memory would depend on the host's random addresses.
    let mut command = bound_to_us(Path::new("setarch"));
    command.arg("--addr-no-randomize").arg(&setup.kernel.linux);
    command.arg(format!("mem={}M", setup.memory_mib));
    command.arg(format!("time-travel=ext:{SERVER_FOLDER}/time.sock"));
    command.arg(format!("virtio_uml.device={SERVER_FOLDER}/card.sock:1234"));
    command.arg(format!("initrd={INITRAMFS}")).arg(format!("hostfs=/proc/self/cwd/{HOST_FOLDER}"));
    command.args(["norandmaps", "panic=-1", "con=null", "con0=null,fd:2"]);
    command.args(setup.parameters).current_dir(setup.folder);
    // The kernel keeps its process number below HOME.
    command.env_clear().env("HOME", ".");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
    let messages = File::options().create(true).append(true).open(&console).map_err(LabError::file(&console))?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(messages);
    // Ctrl-C is for us: we end it.
    command.process_group(0);
    command.spawn().map_err(LabError::system("cannot start setpriv and setarch of util-linux"))
}

/// A command whose process the kernel kills with this one: no machine remains, even after kill -9.
pub fn bound_to_us(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}
