//! A power cut at every command of a plan, before and after its effect: the card's registers alone say where it stands,
//! applying again completes it, and nothing changes that the plan does not name.

use emmc_analysis::hwpart::{self, LayoutRequest};
use emmc_analysis::plan::{Ended, Event, Plan, Protection, Request, Stand, WpRange, carry_out, of_hwpart, plan};
use emmc_port::{Approved, ApprovedErase, CommandPort, Consent, PortError};
use emmc_regs::Persistence;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, field_at, reg};
use emmc_units::Bytes;

use crate::support::virtual_cards::{SERIAL, emmc};

/// When the power of a card is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// Before the command has an effect.
    Before,
    /// After it, before the host gets its response.
    After,
}

/// A card whose power is cut at a command, counted from 1; 0: never.
struct CutPort<'a> {
    card: &'a mut emmc_sim::CommandTarget,
    at: u32,
    cut: Cut,
    count: u32,
}

impl CutPort<'_> {
    fn run<T>(
        &mut self,
        act: impl FnOnce(&mut emmc_sim::CommandTarget) -> Result<T, PortError>,
    ) -> Result<T, PortError> {
        self.count += 1;
        let lost = || PortError::Lost { opcode: 0, reason: "power is lost".into() };
        if self.at != 0 && (self.count > self.at || self.count == self.at && self.cut == Cut::Before) {
            return Err(lost());
        }
        let result = act(self.card);
        if self.count == self.at { Err(lost()) } else { result }
    }
}

impl CommandPort for CutPort<'_> {
    fn ext_csd(&mut self) -> Result<[u8; EXT_CSD_BYTES], PortError> {
        self.run(|card| card.ext_csd())
    }

    fn protection(&mut self, address: u32) -> Result<u64, PortError> {
        self.run(|card| card.protection(address))
    }

    fn send(&mut self, command: Approved) -> Result<(), PortError> {
        self.run(|card| card.send(command))
    }

    fn erase(&mut self, command: ApprovedErase) -> Result<(), PortError> {
        self.run(|card| card.erase(command))
    }
}

fn consent() -> Consent {
    Consent::permanent(&format!("{SERIAL:#x}"), SERIAL).unwrap()
}

fn layout(enh: &str, gp: &[&str], wrrel: Option<&str>) -> Plan {
    let card = emmc();
    let data = card.card().device().card_data("card");
    let enh = (!enh.is_empty()).then(|| enh.parse().unwrap());
    let gp = gp.iter().map(|gp| gp.parse().unwrap());
    let request = LayoutRequest::new(enh, gp, wrrel.map(|wrrel| wrrel.parse().unwrap())).unwrap();
    of_hwpart(&hwpart::plan(&data, &request), &data)
}

fn of(request: &Request) -> Plan {
    plan(&emmc().card().device().card_data("card"), request)
}

fn plans() -> Vec<Plan> {
    let mib = |mib: u64| Bytes(mib << 20);
    let groups = |protection| {
        let range = WpRange { start: mib(64), size: mib(24) };
        Request::WpUser { range, protection }
    };
    let mut all = vec![
        layout("max", &[], Some("off")),
        layout("64MiB:256MiB", &["1:64MiB:enh", "2:8MiB", "4:16MiB"], Some("user=off")),
        layout("", &["3:8MiB:sys"], None),
        layout("", &[], Some("off")),
    ];
    all.extend(
        [
            Request::Boot { from: Some(2), ack: Some(true), width: Some(8), mode: None, keep: Some(true) },
            Request::Bkops { auto: Some(true), manual: true },
            Request::HwReset(true),
            Request::HwReset(false),
            Request::WpBoot { area: Some(1), protection: Protection::Permanent },
            Request::WpBoot { area: None, protection: Protection::PowerOn },
            groups(Protection::Temporary),
            groups(Protection::PowerOn),
            groups(Protection::Permanent),
            Request::Cache(true),
            Request::Set(vec!["FW_CONFIG=1".parse().unwrap(), "PERIODIC_WAKEUP=0x21".parse().unwrap()]),
        ]
        .iter()
        .map(of),
    );
    all
}

/// Bits of the configuration that outlast a power cycle and differ, without those of the plan.
fn changed_beside(plan: &Plan, before: &[u8; EXT_CSD_BYTES], after: &[u8; EXT_CSD_BYTES]) -> Vec<u16> {
    let of_plan = |offset: u16| plan.registers().any(|step| step.offset == offset);
    let lasting = |offset: u16| {
        let field = field_at(offset).unwrap();
        let changed = before[usize::from(offset)] ^ after[usize::from(offset)];
        (0..8).any(|bit| {
            let persistence = field.persistence_of_bit(offset - field.offset, bit);
            changed >> bit & 1 == 1 && persistence.is_persistent() && persistence != Persistence::NotSpecified
        })
    };
    // From 192 on the registers are the card's own: size, health.
    (0..192).filter(|offset| !of_plan(*offset) && lasting(*offset)).collect()
}

#[test]
fn a_cut_at_every_command_leaves_a_state_that_is_told_and_completed() {
    let (mut cuts, mut stands) = (0, std::collections::BTreeSet::new());
    for plan in plans() {
        assert!(plan.ok && !plan.steps.is_empty(), "{}: {:?}", plan.change, plan.refusals);
        let lapses = plan.registers().filter(|step| !step.passing).all(|step| step.lasts.starts_with("until-"));
        for (at, cut) in (1..).flat_map(|at| [(at, Cut::Before), (at, Cut::After)]) {
            let mut card = emmc();
            let before = card.ext_csd().unwrap();
            let mut port = CutPort { card: &mut card, at, cut, count: 0 };
            let ended = carry_out(&plan, &mut port, consent(), &mut |_| true);
            let say = format!("{} {:?}, cut {cut:?} command {at}: {ended:?}", plan.change, plan.requested);
            let was_cut = port.count >= at;
            assert_eq!(was_cut, matches!(ended, Ended::Lost(_)), "{say}");
            card.power_cycle().unwrap();
            let standing = plan.standing(&mut card).unwrap();
            assert_ne!(standing.stand, Stand::Differs, "{say}: {standing:?}");
            assert_ne!(standing.stand, Stand::PowerCycleDue, "{say}: {standing:?}");
            if plan.commits() {
                // Without the commit a power cycle clears everything; with it all is in effect.
                let is_committed = card.ext_csd().unwrap()[155] & 1 == 1;
                let expected = if is_committed { Stand::Done } else { Stand::NothingDone };
                assert_eq!(standing.stand, expected, "{say}: {standing:?}");
            }
            stands.insert(format!("{:?}", standing.stand));
            let after = card.ext_csd().unwrap();
            assert_eq!(changed_beside(&plan, &before, &after), [] as [u16; 0], "{say}");
            if standing.stand != Stand::Done {
                let again = carry_out(&plan, &mut card, consent(), &mut |_| true);
                assert_eq!(again, Ended::Complete, "{say}");
            }
            let standing = plan.standing(&mut card).unwrap();
            assert!(matches!(standing.stand, Stand::Done | Stand::PowerCycleDue), "{say}: {standing:?}");
            card.power_cycle().unwrap();
            if !lapses {
                assert_eq!(plan.standing(&mut card).unwrap().stand, Stand::Done, "{say}");
            }
            cuts += 1;
            if !was_cut {
                break;
            }
        }
    }
    println!("{cuts} cuts, stands found: {stands:?}");
    assert!(cuts > 200, "{cuts}");
    assert_eq!(stands.len(), 3, "{stands:?}");
}

#[test]
fn a_stop_before_every_step_is_told_and_completed() {
    for plan in plans() {
        for stop_at in 0.. {
            let (mut card, mut steps) = (emmc(), 0);
            let ended = carry_out(&plan, &mut card, consent(), &mut |event| {
                steps += u32::from(matches!(event, Event::Sends(_)));
                steps <= stop_at
            });
            let say = format!("{} {:?}, stopped before step {stop_at}: {ended:?}", plan.change, plan.requested);
            let standing = plan.standing(&mut card).unwrap();
            if ended == Ended::Complete {
                assert!(matches!(standing.stand, Stand::Done | Stand::PowerCycleDue), "{say}: {standing:?}");
                break;
            }
            assert_eq!(ended, Ended::Stopped, "{say}");
            assert!(matches!(standing.stand, Stand::NothingDone | Stand::PartlyWritten), "{say}: {standing:?}");
            // What protects later groups more than they say is never left behind.
            assert_eq!(card.ext_csd().unwrap()[171] & 5, 0, "{say}");
            assert_eq!(carry_out(&plan, &mut card, consent(), &mut |_| true), Ended::Complete, "{say}");
            let standing = plan.standing(&mut card).unwrap();
            assert!(matches!(standing.stand, Stand::Done | Stand::PowerCycleDue), "{say}: {standing:?}");
        }
    }
}

#[test]
fn a_card_that_was_changed_meanwhile_is_not_committed() {
    let plan = layout("64MiB:256MiB", &["1:64MiB"], None);
    let say = |ended: &Ended| format!("{ended:?}");
    // Somebody else writes the size of another partition before the commit.
    let other = layout("", &["2:16MiB"], None);
    let mut card = emmc();
    let written = carry_out(
        &other,
        &mut card,
        consent(),
        &mut |event| !matches!(event, Event::Sends(step) if step.contains("COMPLETED")),
    );
    assert_eq!(written, Ended::Stopped);
    assert_eq!(plan.standing(&mut card).unwrap().stand, Stand::Differs);
    let ended = carry_out(&plan, &mut card, consent(), &mut |_| true);
    assert!(say(&ended).contains("would be committed"), "{ended:?}");
    // A plan of incomplete registers does not know what they held.
    let blind = Plan { beside: Vec::new(), ..plan.clone() };
    let ended = carry_out(&blind, &mut card, consent(), &mut |_| true);
    assert!(say(&ended).contains("GP_SIZE_MULT_2 would be committed"), "{ended:?}");
    assert_eq!(card.ext_csd().unwrap()[155], 0);
    // Power is lost between two steps without an error: what was written is gone.
    let mut card = emmc();
    let sizes = carry_out(
        &plan,
        &mut card,
        consent(),
        &mut |event| !matches!(event, Event::Sends(step) if step.contains("COMPLETED")),
    );
    assert_eq!(sizes, Ended::Stopped);
    card.power_cycle().unwrap();
    assert_eq!(plan.standing(&mut card).unwrap().stand, Stand::NothingDone);
    // Consent to reversible changes sends no one-time write.
    let before = card.ext_csd().unwrap();
    let ended = carry_out(&plan, &mut card, Consent::REVERSIBLE, &mut |_| true);
    assert!(say(&ended).contains("nobody agreed"), "{ended:?}");
    let after = card.ext_csd().unwrap();
    assert_eq!(changed_beside(&of(&Request::Cache(true)), &before, &after), [] as [u16; 0]);
}

/// A card whose registers offer what the shipped profiles do not.
fn with_everything() -> emmc_sim::CommandTarget {
    let (mut card, now) = emmc().into_card();
    let mut image = card.registers().ext_csd;
    for (field, value) in [
        (reg::NATIVE_SECTOR_SIZE, 1),
        (reg::PRODUCT_STATE_AWARENESS_ENABLEMENT, 3),
        (reg::SECURE_REMOVAL_TYPE, 0x0f),
        (reg::INI_TIMEOUT_EMU, 5),
    ] {
        image[field] = value;
    }
    card.adopt_ext_csd(&image);
    emmc_sim::CommandTarget::new(card, now).unwrap()
}

#[test]
fn rare_settings_are_carried_out_and_take_effect_when_they_should() {
    let production = Request::ProductionState { state: Some(1), enable: Some((true, false)) };
    for (request, after) in [
        (Request::NativeSectors, Stand::PowerCycleDue),
        (Request::SecureRemoval(2), Stand::Done),
        (production, Stand::Done),
    ] {
        let mut card = with_everything();
        let plan = plan(&card.card().device().card_data("card"), &request);
        assert!(plan.ok, "{:?}", plan.refusals);
        assert_eq!(plan.power_cycle.required, after == Stand::PowerCycleDue, "{}", plan.change);
        assert_eq!(carry_out(&plan, &mut card, consent(), &mut |_| true), Ended::Complete, "{}", plan.change);
        assert_eq!(plan.standing(&mut card).unwrap().stand, after, "{}", plan.change);
        card.power_cycle().unwrap();
        let standing = plan.standing(&mut card).unwrap();
        assert_eq!(standing.stand, Stand::Done, "{}: {standing:?}", plan.change);
    }
}

#[test]
fn protection_that_no_command_ends_is_found_before_anything_is_sent() {
    let mib = |mib: u64| Bytes(mib << 20);
    let groups = |start, size, protection| {
        of(&Request::WpUser { range: WpRange { start: mib(start), size: mib(size) }, protection })
    };
    let mut card = emmc();
    let permanent = groups(64, 8, Protection::Permanent);
    assert_eq!(carry_out(&permanent, &mut card, consent(), &mut |_| true), Ended::Complete);
    for weaker in [Protection::None, Protection::Temporary, Protection::PowerOn] {
        let plan = groups(48, 24, weaker);
        assert_eq!(plan.standing(&mut card).unwrap().stand, Stand::Differs, "{weaker:?}");
        let ended = carry_out(&plan, &mut card, consent(), &mut |_| true);
        assert!(matches!(&ended, Ended::Surprise(why) if why.contains("no command ends")), "{weaker:?}: {ended:?}");
        assert_eq!(card.ext_csd().unwrap()[reg::USER_WP] & 5, 0, "{weaker:?}");
        let around = groups(48, 16, Protection::None);
        assert_eq!(around.standing(&mut card).unwrap().stand, Stand::Done, "{weaker:?}: its neighbours are as before");
    }
    // Temporary protection becomes stronger or ends, group by group.
    for protection in [Protection::Temporary, Protection::None, Protection::Temporary, Protection::PowerOn] {
        let plan = groups(128, 16, protection);
        assert_eq!(carry_out(&plan, &mut card, consent(), &mut |_| true), Ended::Complete, "{protection:?}");
        assert_eq!(plan.standing(&mut card).unwrap().stand, Stand::Done, "{protection:?}");
    }
}
