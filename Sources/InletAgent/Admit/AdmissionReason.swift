internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// What differs by the reason for which files are admitted. All of it is here: there is one way into the journal.
struct AdmissionReason: Sendable {
    /// Files in one transaction. Of those that come one by one more would keep what is being delivered from the journal; those of
    /// a listing come by the thousand, to disks that sync slowly.
    var group = 64
    /// Whether it is no file of a watched folder. Its row has no root, so that it and the row of one never meet; the source stays
    /// where it is, and goes at any time of day, whatever its route says; it waits for no room in the queue; and companions, what
    /// is made of it, and the unit that it is in do not go with it.
    var isAsked = false

    /// It was seen in a watched folder, as events tell.
    static let found = AdmissionReason()
    /// The same among many, in a listing.
    static let listed = AdmissionReason(group: 256)
    /// A person named it (`inlet send`), or it is the list of a unit's checksums, which goes to a destination as files do.
    static let asked = AdmissionReason(isAsked: true)

    /// The routes as they are for such files.
    func routes(_ table: RouteTable) -> RouteTable { isAsked ? RouteTable(table.routes.map { Self.asked($0) }) : table }

    private static func asked(_ route: Route) -> Route {
        var route = route
        (route.onSuccess, route.onFailure) = (.keep, .keep)
        route.window = nil
        return route
    }

    /// The file as its row has it.
    func row(of arrival: FoundFile) -> FoundFile {
        if !isAsked { return arrival }
        return FoundFile(root: "", path: arrival.root.pushing(arrival.path), identity: arrival.identity)
    }
}

/// A complete file on its way to the journal.
struct Candidate: Sendable {
    var arrival: FoundFile
    /// Those that go with it; nearly always none.
    var companions: [FoundCompanion] = []
    /// What it is to a file that the journal has already; nil for one that stands for itself.
    var late: (companion: Companion, main: Int64)?
    /// Of its folder.
    var rule: SourceRule
    /// What was read of it before, when the journal did not take it.
    var facts = FileProperties()
}

/// What came of a file that was to be admitted.
struct AdmissionResult: Sendable {
    enum Outcome: Sendable, Equatable {
        /// What the journal says of it.
        case journal(AdmissionOutcome)
        /// No route takes it.
        case unmatched
        /// It is no longer there.
        case gone
        /// It cannot be read now.
        case unreadable(why: String)
        /// Something else is in its way; the journal may take nothing now.
        case later

        /// Whether it is admitted anew in a while, as it is then.
        var comesBack: Bool {
            switch self {
            case .journal(let outcome): outcome.comesBack
            case .unreadable, .later: true
            case .unmatched, .gone: false
            }
        }
    }

    var arrival: FoundFile
    var outcome: Outcome
    /// Its companions that the journal has now.
    var companions: [FilePath] = []
    /// What was read of it, for the next time where it comes back.
    var facts = FileProperties()
}

/// A folder that is delivered as one, and into which a file was taken.
typealias JoinedUnit = (unit: UnitClock.Unit, settle: Duration, completion: Completion)
