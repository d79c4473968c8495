package import InletCore
package import SystemPackage

/// What a settled file is admitted as.
package struct Admission: Sendable {
    package var arrival: Arrival
    /// nil for a file that is rejected before any delivery.
    package var plan: Plan?
    /// For each destination that gets bytes.
    package var lanes: [String: Lane]
    /// The expiry clock of each destination, in milliseconds.
    package var uptimes: [String: Int64]
    package var rejection: (route: Route, reason: String, code: ErrorCode)?
    /// Admitted although the journal knows the path, because a person asked for it: unless a row newer than this one is of
    /// the same file to the same destinations. nil = admitted only if new.
    package var newerThan: Int64?
    /// The files that travel with it; in the same transaction, so that none is ever there without its main file.
    package var companions: [CompanionAdmission] = []
    /// The folder, below the root, that is delivered as one: nothing of it goes before `closeUnit`.
    package var unit: FilePath?
    /// Of the plan's destinations, those that only register the file, with the one that must have it first.
    package var storages: [String: String] = [:]

    /// The deliveries that it is admitted with.
    package var steps: DeliverySteps { DeliverySteps(plan?.destinations ?? [], storages: storages) }

    /// A file that goes to its plan's destinations.
    package init(_ arrival: Arrival, plan: Plan, lanes: [String: Lane], uptimes: [String: Int64]) {
        self.arrival = arrival
        self.plan = plan
        self.lanes = lanes
        self.uptimes = uptimes
    }

    /// A file that its route refuses.
    package init(_ arrival: Arrival, rejectedBy route: Route, reason: String, code: ErrorCode = .rejected) {
        self.arrival = arrival
        rejection = (route, reason, code)
        lanes = [:]
        uptimes = [:]
    }
}

/// What `admit` did.
package enum AdmissionOutcome: Sendable, Equatable {
    /// A new row; the file is the journal's now.
    case admitted(id: Int64)
    case rejected(id: Int64)
    /// A new row that has ended: all its destinations have the content, which job `of` brought to the first of them.
    case duplicate(id: Int64, of: Int64)
    /// The same file is in the journal already.
    case known(id: Int64)
    /// An older content of this path is on its way; it must end first.
    case busy(id: Int64)
    /// There is no room in the queue now.
    case full
}
