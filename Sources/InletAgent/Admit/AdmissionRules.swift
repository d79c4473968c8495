internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Why a file is to be admitted.
enum AdmissionReason: Sendable {
    /// It was seen in a watched folder: one by one as events tell, or among many in a listing.
    case found(inListing: Bool)
    /// It was there before its folder was first watched (`existing: adopt`).
    case adopted
    /// A person named it (`inlet send`).
    case sent
    /// It is the list of a unit's checksums, which goes to a destination as files do.
    case manifest
}

/// What differs by the reason for which a file is admitted. All of it is here: there is one way into the journal.
struct AdmissionRules: Sendable {
    /// Files in one transaction. Of those that come one by one more would keep what is being delivered from the journal; those of
    /// a listing come by the thousand, to disks that sync slowly.
    var group = 64
    /// Whether its row has the root that the file is in. Rows of files that were sent have none, so that they and those of a
    /// watched folder never meet.
    var hasRoot = true
    /// Whether the source stays where it is, and goes at any time of day, whatever its route says.
    var isAsked = false
    /// Whether it waits for room in the queue.
    var isLimited = true
    /// Whether companions, what is made of it, and the unit that it is in go with it.
    var takesOthers = true
    /// Whether it is only known, and not sent: nothing is read of it but what its key needs.
    var isAdopted = false

    init(for reason: AdmissionReason) {
        switch reason {
        case .found(let isListed): group = isListed ? 256 : 64
        case .adopted: isAdopted = true
        case .sent, .manifest: (hasRoot, isAsked, isLimited, takesOthers) = (false, true, false, false)
        }
    }

    /// The routes as they are for such files.
    func routes(_ table: RouteTable) -> RouteTable {
        if isAdopted { return table.adopting }
        return isAsked ? RouteTable(table.routes.map { Self.asked($0) }) : table
    }

    private static func asked(_ route: Route) -> Route {
        var route = route
        (route.onSuccess, route.onFailure) = (.keep, .keep)
        route.window = nil
        return route
    }

    /// The file as its row has it.
    func row(of arrival: Arrival) -> Arrival {
        if hasRoot { return arrival }
        return Arrival(root: "", path: arrival.root.pushing(arrival.path), identity: arrival.identity)
    }
}

/// A complete file on its way to the journal.
struct Candidate: Sendable {
    enum Role: Sendable {
        /// A file with the companions that go with it; nearly always none.
        case main([FoundCompanion])
        /// A companion of a file that the journal has already.
        case late(Companion, main: Int64)
    }

    var arrival: Arrival
    var role: Role
    /// Of its folder.
    var rule: SourceRule
    /// What was read of it before, when the journal did not take it.
    var facts = Facts()
}

/// A file of which it is known where it goes.
struct PlannedFile: Sendable {
    var record: FileAdmission
    var plan: Plan
    /// What a person should know of it, once it is admitted.
    let notes: [String]

    /// Blocks for a look at the folder of a name that can be spelled in several ways.
    init(_ record: FileAdmission, _ plan: Plan) {
        (self.record, self.plan) = (record, plan)
        notes = plan.notes + [record.arrival.normalizationConflict].compactMap(\.self)
    }
}

/// What came of a file that was to be admitted.
struct AdmissionResult: Sendable {
    enum Outcome: Sendable, Equatable {
        case admitted(Int64)
        /// Its destinations have its content, which job `of` brought to the first of them.
        case duplicate(Int64, of: Int64)
        /// The journal has it already.
        case known(Int64)
        case rejected(Int64)
        /// No route takes it.
        case unmatched
        /// It is no longer there.
        case gone
        /// What was at its path before, in this row, must end first.
        case busy(Int64)
        /// There is no room in the queue: it stays where it is until there is.
        case full
        /// It cannot be read now.
        case unreadable(why: String)
        /// Something else is in its way.
        case later(after: Duration, why: String)
    }

    var arrival: Arrival
    var outcome: Outcome
    /// Its companions that the journal has now.
    var companions: [FilePath] = []
    /// What was read of it, for the next time where it comes back.
    var facts = Facts()
}

extension AdmissionResult.Outcome {
    init(_ outcome: AdmissionOutcome) {
        self =
            switch outcome {
            case .admitted(let id): .admitted(id)
            case .duplicate(let id, let first): .duplicate(id, of: first)
            case .known(let id): .known(id)
            case .rejected(let id): .rejected(id)
            case .busy(let id): .busy(id)
            case .full: .full
            }
    }

    /// The journal does not take it, whoever it is.
    static var unwritten: Self { .later(after: .seconds(1), why: "the journal cannot be written now") }

    /// Whether it is admitted anew in a while, as it is then.
    var comesBack: Bool {
        switch self {
        case .busy, .full, .unreadable, .later: true
        case .admitted, .duplicate, .known, .rejected, .unmatched, .gone: false
        }
    }
}

/// What came of many, for the loop that watches their folder.
struct AdmissionRound: Sendable {
    /// A folder that is delivered as one, and into which a file was taken.
    struct Joined: Sendable {
        var unit: UnitClock.Unit
        var settle: Duration
        var completion: Completion
    }

    /// To be looked at again later, with what went wrong with the file itself.
    var later: [(path: FilePath, why: String?)] = []
    /// For which there is no room in the queue, in the order in which they were ready.
    var refused: [FilePath] = []
    /// Companions that are in the journal now.
    var companions: [FilePath] = []
    var units: [Joined] = []
}
