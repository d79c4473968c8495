internal import InletCore
internal import InletJournal
internal import SystemPackage

/// A settled file on its way to the journal.
struct Candidate: Sendable {
    enum Role: Sendable {
        /// A file with the companions that go with it; nearly always none.
        case main([SetFinder.Found])
        /// A companion of a file that the journal has already.
        case late(Companion, main: Int64)
    }

    var arrival: Arrival
    var role: Role
    /// Of its folder.
    var rule: SourceRule
}

/// What came of a round of admissions.
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

    mutating func append(_ other: AdmissionRound) {
        later += other.later
        refused += other.refused
        companions += other.companions
        units += other.units
    }
}

/// A candidate that stands for itself, and of which the routes need to know no more than its name.
struct PlainAdmission: Sendable {
    var admission: FileAdmission
    var plan: Plan
    /// What a person should know of it, once it is admitted.
    let notes: [String]

    /// Blocks for a look at the folder of a name that can be spelled in several ways.
    init(admission: FileAdmission, plan: Plan) {
        (self.admission, self.plan) = (admission, plan)
        notes = plan.notes + [TwinName.note(admission.arrival)].compactMap(\.self)
    }
}
