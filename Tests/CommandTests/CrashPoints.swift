/// Where the process dies in tests of one thing each: values of INLET_FAILPOINT. Those of everyday deliveries are
/// `CrashKind.points`.
///
/// A test goes through its list by name, so that `FailpointTableTests` can see that each failpoint is in one.
enum CrashPoints: String, CaseIterable, Sendable {
    case sidecar, lateSidecar, companion, unit, places, rejected, otherDisk, held, leftover
    case command, receipt, endNotice, takenNotice, destinationNotice, manifest
    case version, fail, expiry, formTooLarge, putOff, sentAgain, lockWait, markers

    var list: [String] {
        switch self {
        case .sidecar:
            [
                "admitting", "admitted", "claimed:2", "settling:2", "delivered", "delivered:2", "intending",
                "moveNoted", "moved", "moved:2", "disposed", "disposed:2", "finished", "finished:2",
            ]
        case .companion:
            [
                "derived", "admitting", "admitted", "claimed", "claimed:2", "settling:2", "delivered", "delivered:2",
                "intending", "moved", "disposed", "disposed:2", "finished", "finished:2",
            ]
        case .lateSidecar: ["admitting", "admitted", "delivered", "finished"]
        case .unit:
            [
                "admitting", "admitted:2", "closingUnit", "unitClosed", "claimed:2", "delivered", "delivered:2",
                "moved:2", "disposed:3", "finished", "finished:3",
            ]
        case .places:
            [
                "claimed:2", "settling", "afterComplete", "afterComplete:2", "delivered", "delivered:2", "intending",
                "disposed", "finished",
            ]
        case .rejected:
            [
                "admitting", "admitted", "intending", "intentWritten", "renamedAway", "moveNoted", "moved",
                "reasonWritten", "disposed", "finished",
            ]
        case .otherDisk: ["renamedAway", "moveNoted", "moveCopied", "moved", "disposed"]
        case .held: ["intentWritten", "renamedAway", "moveNoted", "moved", "disposed"]
        case .leftover: ["abandoned", "leftoverRemoved"]
        case .command: ["acting", "acted"]
        case .receipt: ["disposed", "receiptWritten"]
        case .endNotice: ["disposed", "finished"]
        case .takenNotice: ["noticeTaken", "noticeRemoved"]
        case .destinationNotice: ["posting", "posted"]
        case .manifest: ["listAtHome", "generationWritten", "listsWritten", "listsDone"]
        default: notes
        }
    }

    /// At notes that deliveries leave only when something has gone wrong, or where people work too.
    private var notes: [String] {
        switch self {
        case .version:
            ["noting:key", "noted:key", "afterComplete", "settling", "delivered", "disposed", "finished"]
        case .fail: ["claimed", "afterComplete", "settling", "delivered", "disposed", "finished"]
        case .expiry: ["noting:stale", "noted:stale", "noting:expired:2", "noted:expired:2"]
        case .formTooLarge: ["noting:transport", "noted:transport"]
        case .putOff: ["noting:finalize", "noted:finalize"]
        case .sentAgain: ["noting:second", "noted:second"]
        case .lockWait: ["noting:locked", "noted:locked"]
        case .markers:
            [
                "noting:lock_token", "noted:lock_token", "noting:completing", "noted:completing", "noting:completing:2",
                "noted:completing:2",
            ]
        default: []
        }
    }
}
