//! Command dispatch: a command is decoded, checked against state and mode, then passed to its file.

use emmc_regs::CardKind;
use emmc_regs::command::{AppCommand, Command, Response, SdCommand};
use emmc_regs::r1::{R1, State};
use emmc_units::Instant;

use super::legality::{Phase, concerns, is_legal};
use super::{Area, Card, DataPhase, Reply, interrupt, queue, sd};

/// Classes that a part has only if its CSD says so. Parts accept CMD55 and CMD56 without listing class 8.
const OPTIONAL_CLASSES: [u8; 5] = [1, 3, 9, 10, 11];
/// Commands that are legal while RPMB is accessed.
const WITH_RPMB: [u8; 12] = [0, 6, 7, 8, 12, 13, 15, 16, 18, 23, 25, 55];

impl Card {
    /// The host sends a command.
    pub fn handle_command(&mut self, index: u8, argument: u32, now: Instant) -> Reply {
        self.settle(now);
        self.status.begin();
        self.features.background.command();
        let after_app_cmd = std::mem::take(&mut self.after_app_cmd);
        let command = match after_app_cmd {
            true => Command::decode_app(index, argument, self.kind),
            false => Command::decode(index, argument, self.kind),
        };
        let state = match self.phase {
            Phase::Off | Phase::Inactive => return Reply::SILENT,
            Phase::PreIdle => State::Idle,
            Phase::In(state) => state,
        };
        if !concerns(&command, self.rca) {
            return Reply::SILENT;
        }
        let legal = match self.kind {
            CardKind::Emmc => is_legal(state, &command),
            CardKind::Sd => sd::is_legal(state, &command),
        };
        if !legal || !self.gate(&command) || !self.features_allow(&command) {
            self.status.raise(R1::ILLEGAL_COMMAND);
            return Reply::SILENT;
        }
        if self.phase == Phase::PreIdle {
            self.phase = Phase::In(State::Idle);
        }
        self.end_sequences(&command);
        let reply = self.execute(&command, now);
        if self.phase == Phase::Off {
            return Reply::SILENT;
        }
        if !matches!(reply.response, Response::R1(_) | Response::R1b(_) | Response::R6 { .. }) {
            self.status.pass_untold();
        }
        self.schedule_background(now);
        reply
    }

    /// A command with a wrong checksum arrived.
    pub fn handle_damaged_command(&mut self, now: Instant) -> Reply {
        self.settle(now);
        if matches!(self.phase, Phase::In(_)) {
            self.status.raise(R1::COM_CRC_ERROR);
        }
        Reply::SILENT
    }

    /// Whether mode and features allow a command that the state allows.
    fn gate(&self, command: &Command) -> bool {
        let spec = command.spec();
        let csd = self.csd();
        if spec.class.is_some_and(|class| OPTIONAL_CLASSES.contains(&class) && !csd.has_class(class)) {
            return false;
        }
        // A locked card accepts reset, identification, status and unlock commands.
        let negotiates = matches!(command, Command::App(AppCommand::SdSendOpCond { .. }));
        let is_basic = matches!(spec.index, 0..=10 | 12..=16 | 42 | 55);
        if self.lock.is_locked() && !is_basic && !negotiates {
            return false;
        }
        if self.area() == Area::Rpmb && self.is_selected() && !WITH_RPMB.contains(&spec.index) {
            return false;
        }
        match command {
            // A selected card cannot be selected again.
            Command::SelectCard { rca } if *rca == self.rca => {
                matches!(self.phase, Phase::In(State::Stby | State::Dis))
            }
            Command::SetBlockLen { .. } => !self.interface.is_ddr(),
            Command::SendTuningBlock => self.interface.takes_tuning(),
            Command::ReadSingleBlock { .. } | Command::WriteBlock { .. } => !self.has_native_sectors(),
            _ => true,
        }
    }

    /// Whether the enabled features allow a command.
    fn features_allow(&self, command: &Command) -> bool {
        use Command as C;
        if self.features.boot.is_active && !matches!(command, C::GoIdleState | C::GoPreIdleState) {
            return false;
        }
        let queues = self.is_queueing();
        if queues && !queue::is_legal(command, self.features.queue.is_empty()) {
            return false;
        }
        match command {
            C::BootInitiation => self.can_boot(),
            C::StopTransmission { hpi: true, .. } if self.phase == Phase::In(State::Prg) => {
                interrupt::is_interrupt(&self.device.stored_registers().ext_csd, command)
            }
            C::SetWriteProt { .. } | C::ClrWriteProt { .. } | C::SendWriteProt { .. } | C::SendWriteProtType { .. } => {
                self.has_groups()
            }
            C::QueuedTaskParams(_)
            | C::QueuedTaskAddress { .. }
            | C::ExecuteReadTask { .. }
            | C::ExecuteWriteTask { .. }
            | C::CmdqTaskMgmt(_) => queues,
            C::Sd(command) => self.sd_allows(*command),
            _ => true,
        }
    }

    fn is_selected(&self) -> bool {
        !matches!(self.phase, Phase::PreIdle | Phase::In(State::Idle | State::Ready | State::Ident | State::Stby))
    }

    /// Ends command sequences that this command does not continue.
    fn end_sequences(&mut self, command: &Command) {
        if !matches!(command, Command::SendStatus { .. } | Command::Sd(SdCommand::SendStatus { .. })) {
            let uses_count = matches!(command, Command::ReadMultipleBlock { .. } | Command::WriteMultipleBlock { .. });
            if !uses_count {
                self.block_count = None;
                self.forget_sd_count();
            }
            let erases =
                matches!(command, Command::EraseGroupStart { .. } | Command::EraseGroupEnd { .. } | Command::Erase(_))
                    || sd::is_erase(command);
            if !erases && self.erase.abandon() {
                self.status.raise(R1::ERASE_RESET);
            }
        }
    }

    /// Executes a legal command.
    fn execute(&mut self, command: &Command, now: Instant) -> Reply {
        match *command {
            Command::GoIdleState => self.go_idle(now),
            Command::GoPreIdleState => self.go_pre_idle(now),
            Command::SendOpCond { ocr } => self.send_op_cond(ocr, now),
            Command::AllSendCid => self.all_send_cid(),
            Command::SetRelativeAddr { rca } => self.set_relative_addr(rca),
            Command::SelectCard { rca } => self.select_card(rca),
            Command::SendCsd { .. } => Reply::with(Response::R2(self.csd().bytes)),
            Command::SendCid { .. } => Reply::with(Response::R2(self.device.stored_registers().cid)),
            Command::GoInactiveState { .. } => self.go_inactive(),
            Command::SendStatus { sqs: true, .. } if self.is_queueing() => self.queue_status(now),
            Command::SendStatus { hpi, .. } => {
                let reply = self.answer();
                if hpi && interrupt::is_interrupt(&self.device.stored_registers().ext_csd, command) {
                    self.interrupt(now);
                }
                reply
            }
            Command::AppCmd { .. } => {
                self.after_app_cmd = true;
                self.answer()
            }
            Command::StopTransmission { .. } if self.phase == Phase::In(State::Prg) => {
                let r1 = self.r1();
                self.interrupt(now);
                Self::answer_busy(r1, self.busy_until)
            }
            Command::StopTransmission { .. } => self.stop_transmission(now),
            Command::Switch(switch) => self.switch(switch, now),
            Command::SendExtCsd => self.send_ext_csd(now),
            Command::BusTestW => self.bus_test_w(now),
            Command::BusTestR => self.bus_test_r(now),
            Command::SendTuningBlock => self.send_tuning_block(now),
            Command::SetBlockLen { bytes } => self.set_block_len(bytes),
            Command::SetBlockCount(count) => {
                self.block_count = Some(count);
                self.answer()
            }
            Command::ReadSingleBlock { address } => self.read_single(address, now),
            Command::ReadMultipleBlock { address } => self.read_multiple(address, now),
            Command::WriteBlock { address } => self.write_single(address, now),
            Command::WriteMultipleBlock { address } => self.write_multiple(address, now),
            Command::ProgramCid => self.program_cid(now),
            Command::ProgramCsd => self.program_csd(now),
            Command::EraseGroupStart { address } => self.erase_start(address),
            Command::EraseGroupEnd { address } => self.erase_end(address),
            Command::Erase(erase) => self.erase(erase, now),
            Command::LockUnlock => self.lock_unlock(now),
            Command::SetTime => self.set_time(now),
            Command::SleepAwake { sleep, .. } => self.sleep_awake(sleep, now),
            Command::SetWriteProt { address } => self.set_write_prot(address, now),
            Command::ClrWriteProt { address } => self.clr_write_prot(address, now),
            Command::SendWriteProt { address } => self.send_write_prot(address, false, now),
            Command::SendWriteProtType { address } => self.send_write_prot(address, true, now),
            Command::GenCmd { argument } => self.gen_cmd(argument, now),
            Command::BootInitiation => self.boot(now),
            Command::QueuedTaskParams(params) => self.queue_params(params),
            Command::QueuedTaskAddress { address } => self.queue_address(address, now),
            Command::ExecuteReadTask { task_id } => self.execute_task(task_id, true, now),
            Command::ExecuteWriteTask { task_id } => self.execute_task(task_id, false, now),
            Command::CmdqTaskMgmt(management) => self.manage_tasks(management, now),
            Command::Sd(command) => self.execute_sd(command, now),
            Command::App(command) => self.execute_app(command, now),
            // The rest has no effect, or cannot occur in any state.
            _ => Reply::SILENT,
        }
    }

    /// A response with the card status only.
    pub(super) fn answer(&mut self) -> Reply {
        Reply::with(Response::R1(self.r1()))
    }

    /// The response of a refused command: with error bits, and without data.
    pub(super) fn refuse(&mut self, bits: R1) -> Reply {
        self.status.raise(bits);
        self.answer()
    }

    /// The response of a command with data.
    pub(super) fn answer_with(r1: R1, data: DataPhase) -> Reply {
        Reply { response: Response::R1(r1), busy_until: None, data: Some(data) }
    }

    /// The response of a command with busy: the status at the arrival of the command.
    pub(super) fn answer_busy(r1: R1, busy_until: Instant) -> Reply {
        Reply { response: Response::R1b(r1), busy_until: Some(busy_until), data: None }
    }

    /// Whether the card is an eMMC.
    pub(super) fn is_emmc(&self) -> bool {
        self.kind == CardKind::Emmc
    }
}
