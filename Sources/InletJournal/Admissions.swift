internal import GRDB
package import InletCore
package import SystemPackage

/// Everything the journal needs to admit a settled file.
package struct FileAdmission: Sendable {
    package var arrival: FoundFile
    /// nil for a file that its route rejects.
    package var plan: Plan?
    /// One entry for each destination that receives bytes.
    package var lanes: [String: Lane]
    /// The expiry clock of each destination, in milliseconds.
    package var uptimes: [String: Int64]
    package var rejection: (route: Route, reason: String, code: ErrorCode)?
    /// A person asked for the file, so it is admitted even if the journal knows the path. Exception: a newer row sends
    /// the same file to the same destinations. nil admits only new files.
    package var newerThan: Int64?
    /// Companions, admitted in the same transaction: none is ever visible without its main file.
    package var companions: [CompanionAdmission] = []
    /// The folder below the root that is delivered as one. Nothing of it is sent before `closeUnit`.
    package var unit: FilePath?
    /// Destinations of the plan that only register the file, each with the destination that must have it first.
    package var storages: [String: String] = [:] {
        didSet { steps = DeliverySteps(plan?.destinations ?? [], storages: storages) }
    }

    /// The name of the route that takes or rejects the file.
    package var route: String { plan?.route ?? rejection?.route.name ?? "" }
    /// The deliveries to create.
    package private(set) var steps: DeliverySteps

    /// A file for its plan's destinations.
    package init(_ arrival: FoundFile, plan: Plan, lanes: [String: Lane], uptimes: [String: Int64]) {
        self.arrival = arrival
        self.plan = plan
        self.lanes = lanes
        self.uptimes = uptimes
        steps = DeliverySteps(plan.destinations)
    }

    /// A file that its route rejects.
    package init(_ arrival: FoundFile, rejectedBy route: Route, reason: String, code: ErrorCode = .rejected) {
        self.arrival = arrival
        rejection = (route, reason, code)
        unit = route.unit(of: arrival.path)
        lanes = [:]
        uptimes = [:]
        steps = DeliverySteps([])
    }
}

/// The outcome of `admit` for a file and its companions, in their order.
package typealias AdmittedFile = (main: AdmissionOutcome, companions: [AdmissionOutcome])

package enum AdmissionOutcome: Sendable, Equatable {
    /// A new row: the journal owns the file now.
    case admitted(id: Int64)
    case rejected(id: Int64)
    /// A new row that has already ended: every destination has the content. Job `of` brought it to the first of them.
    case duplicate(id: Int64, of: Int64)
    /// The journal already has this file.
    case known(id: Int64)
    /// An older content of this path is still being delivered and must end first.
    case busy(id: Int64)
    /// The queue has no room now.
    case full

    /// Whether to offer the file again.
    package var comesBack: Bool {
        switch self {
        case .busy, .full: true
        case .admitted, .rejected, .duplicate, .known: false
        }
    }

    /// The number of a new row; nil where none was made.
    package var newRow: Int64? {
        switch self {
        case .admitted(let id), .rejected(let id), .duplicate(let id, _): id
        case .known, .busy, .full: nil
        }
    }
}

/// A file that was there before its folder was watched. It counts as delivered without being sent (`existing: adopt`).
package struct FileAdoption: Sendable {
    package enum Outcome: Sendable, Equatable {
        case adopted(id: Int64)
        /// The journal already has the file.
        case known
        /// Another file has the key, so the object under it is that other file.
        case keyTaken
    }

    package var arrival: FoundFile
    /// The plan that a delivery would have had; nil for a companion, which follows its file.
    package var plan: Plan?
    package var role: Companion.Kind?
    /// Whether it counts only under exactly the plan's key.
    package var needsKey: Bool

    package init(_ arrival: FoundFile, plan: Plan?, role: Companion.Kind? = nil, needsKey: Bool = false) {
        self.arrival = arrival
        self.plan = plan
        self.role = role
        self.needsKey = needsKey
    }
}

extension Journal {
    /// Durable point 1: from here on each file is delivered, or its failure is on record. Idempotent. One transaction
    /// takes all files with their companions, or none. Once one finds no room, the files after it find none either, so
    /// that they cannot overtake it.
    ///
    /// - Parameter durable: receives the outcomes before any of the files can be claimed.
    /// - Returns: the outcomes, in the files' order.
    package func admit(
        _ admissions: [FileAdmission], within limit: QueueLimit = QueueLimit(), at now: WallTime,
        durable: @escaping @Sendable ([AdmittedFile]) -> Void = { _ in }
    ) async throws(JournalError) -> [AdmittedFile] {
        try await commit(
            { database in
                var batch = AdmissionBatch(admissions, limit, now)
                return try batch.run(database)
            }, durable: durable)
    }

    /// The reason why a file gets no row of its own: the journal knows it, or there is no room. nil for nearly all.
    ///
    /// - Parameters:
    ///   - previous: the newest file of its path.
    ///   - besides: files of the same transaction that have no row yet.
    static func answer(
        to admission: FileAdmission, _ previous: LatestFile?, _ limit: QueueLimit, _ isFull: inout Bool,
        besides: (files: Int, bytes: Int64), _ now: WallTime, _ database: Database
    ) throws -> AdmissionOutcome? {
        if let last = admission.newerThan {
            // Offered twice at once: the first has just been admitted.
            if let twin = try twin(of: admission, newerThan: last, database) { return .known(id: twin) }
        } else if let obstacle = try obstacle(previous, to: admission.arrival, now, database) {
            return obstacle
        }
        if !limit.isOff, admission.plan != nil, try !hasRoom(for: admission, limit, isFull, besides, database) {
            isFull = true
            return .full
        }
        guard admission.newerThan == nil, let previous else { return nil }
        return try returned(admission, previous, now, database).map { .admitted(id: $0) }
    }

    /// A new row with its deliveries and companions.
    static func insert(
        _ admission: FileAdmission, _ now: WallTime, _ database: Database
    ) throws -> AdmittedFile {
        let admission = try withoutNeedless(admission, now, database)
        let batch = try batch(for: admission, now, database)
        var file = FileRow(admission, at: now)
        file.batchID = batch?.id
        let id = try insert(file, database)
        let links = try insertDeliveries(file: id, admission, batch, now, database)
        if let first = links.first {
            for link in links { try releaseRegistrations(after: link.delivery, now, database) }
            try concludeFile(id, now, database)
            if try self.file(id, database).state.isFinal { return (.duplicate(id: id, of: first.original.job), []) }
        }
        let companions = try admission.companions.map {
            try insertCompanion($0, of: id, isLate: false, admission.uptimes, now, database)
        }
        return (admission.plan == nil ? .rejected(id: id) : .admitted(id: id), companions)
    }

    /// Derived files are not needed where every destination has the original's content, and with it theirs.
    private static func withoutNeedless(
        _ admission: FileAdmission, _ now: WallTime, _ database: Database
    ) throws -> FileAdmission {
        guard let plan = admission.plan, admission.unit == nil, !admission.companions.isEmpty,
            admission.companions.allSatisfy({ $0.companion.kind == .derived })
        else { return admission }
        for step in admission.steps.steps {
            guard let wanted = DeliveryContent(plan, step, size: admission.arrival.identity.size),
                case .brought = try status(of: wanted, at: now, database)
            else { return admission }
        }
        var alone = admission
        alone.companions = []
        return alone
    }

    /// Inserts the deliveries of a file. - Returns: the deliveries whose destination already has the content.
    private static func insertDeliveries(
        file id: Int64, _ admission: FileAdmission, _ batch: (id: Int64, isOpen: Bool)?, _ now: WallTime,
        _ database: Database
    ) throws -> [Link] {
        guard let plan = admission.plan else { return [] }
        let isHeld = batch?.isOpen ?? false
        var leaders: [String: (id: Int64, key: String)] = [:]
        var links: [Link] = []
        for step in admission.steps.steps {
            // Members of a set wait for its turn, and are checked then.
            let isStoredAnew = step.after.map { leader in !links.contains { $0.destination == leader } } ?? false
            if batch == nil, !isStoredAnew, let link = try link(file: id, step, admission, plan, now, database) {
                links.append(link)
                leaders[step.destination] = (link.delivery, link.original.proof.key)
                continue
            }
            let leader = step.after.flatMap { leaders[$0] }
            let key = try freeKey(leader?.key ?? plan.key(at: step.destination), step.destination, database)
            var delivery = NewDelivery(of: admission, plan, to: step.destination, file: id, now)
            (delivery.key, delivery.after) = (key, leader?.id)
            // A registration sends no bytes.
            if leader != nil { delivery.lane = .small }
            // Time spent in an open unit, or waiting for the file's storage, does not count: the clock starts later.
            if isHeld || leader != nil { (delivery.nextAt, delivery.expiresAt) = (never, nil) }
            leaders[step.destination] = (try insert(delivery, database), key)
        }
        return links
    }

    private typealias Link = (destination: String, delivery: Int64, original: Original)

    /// The delivery of a step whose destination already has the content, delivered without a key of its own; nil when
    /// the file must be sent.
    private static func link(
        file: Int64, _ step: DeliverySteps.Step, _ admission: FileAdmission, _ plan: Plan, _ now: WallTime,
        _ database: Database
    ) throws -> Link? {
        guard let wanted = DeliveryContent(plan, step, size: admission.arrival.identity.size),
            case .brought(let original) = try status(of: wanted, at: now, database)
        else { return nil }
        var delivery = NewDelivery(file: file, destination: step.destination, nextAt: now.milliseconds)
        delivery.fields = plan.with
        let id = try insert(delivery, database)
        _ = try markDelivered(try self.delivery(id, database), original.link, now, database)
        return (step.destination, id, original)
    }

    /// The outcome that an existing row of this path forces; nil when the path is free for a new row.
    static func obstacle(
        _ previous: LatestFile?, to arrival: FoundFile, _ now: WallTime, _ database: Database
    ) throws -> AdmissionOutcome? {
        guard let previous else { return nil }
        if previous.status(of: arrival, 0) == .known { return .known(id: previous.id) }
        if previous.state == .pending, try !supersede(previous.id, now, database) { return .busy(id: previous.id) }
        return nil
    }

    /// Continues a file that ended as gone and is back unchanged: unsent deliveries continue under their keys, and
    /// delivered ones are not sent again. nil for every other file.
    private static func returned(
        _ admission: FileAdmission, _ previous: LatestFile, _ now: WallTime, _ database: Database
    ) throws -> Int64? {
        let arrival = admission.arrival
        guard let plan = admission.plan, admission.companions.isEmpty, previous.state == .gone,
            arrival.identity.isKnown(as: previous.identity),
            let file = try latest(arrival.root, arrival.path, arrival.volume?.key, database), file.route == plan.route
        else { return nil }
        let deliveries = try job(file, database).deliveries
        guard Set(deliveries.map(\.destination)) == Set(admission.steps.destinations) else { return nil }
        // With a checksum, delivery compares the content when it opens the file. Without one, only numbers that cannot
        // be set back prove that it is unchanged.
        if file.content == nil, file.digests.isEmpty {
            let isTouched = arrival.identity.changed != file.identity.changed
            if isTouched, deliveries.contains(where: { $0.state == .delivered }) { return nil }
            // Never append another content to a part that was sent.
            if isTouched, try isSentInPart(file.id, database) { return nil }
            try reviveUndelivered(file.id, database)
            try refresh(file.id, arrival.identity, database)
        }
        return try retry(file.id, admission.uptimes, [:], of: RetryScope(states: [.gone]), now, database)
            ? file.id : nil
    }

    /// Whether an open or ended row sends the same file to the same destinations.
    private static func twin(
        of admission: FileAdmission, newerThan last: Int64, _ database: Database
    ) throws -> Int64? {
        let arrival = admission.arrival
        let wanted = Set(admission.steps.destinations)
        return try FileRow.all(
            database, "WHERE root = ? AND path = ? AND id > ? AND volume IS NULL ORDER BY id DESC LIMIT 20",
            [arrival.root, arrival.path, last]
        ).first { file in
            let destinations = try job(file, database).deliveries.map(\.destination)
            return arrival.identity == file.identity && Set(destinations) == wanted
        }?.id
    }

    /// Ends the waiting deliveries of an older content. False while one of them runs, which notices the change itself.
    /// A delivery that closes a unit stays, because it does not depend on the content of its file.
    private static func supersede(_ previous: Int64, _ now: WallTime, _ database: Database) throws -> Bool {
        let running = try database.integer(
            "SELECT count(*) FROM delivery WHERE file_id = ? AND state = 'claimed' AND closes IS NULL", previous)
        guard running == 0 else { return false }
        let open = try database.integers(
            "SELECT id FROM delivery WHERE file_id = ? AND state IN ('ready', 'parked') AND closes IS NULL", previous)
        for id in open {
            try endDelivery(
                id, .superseded, code: .sourceChanged, reason: "the file changed before it was sent", now, database)
        }
        return true
    }

    /// `key`, or the first of `key_2`, `key_3`… that no other delivery to the destination has or had (the first free
    /// one if there are no gaps). Doubling and halving: the ten thousandth file of one name needs a few queries, not
    /// ten thousand.
    static func freeKey(_ key: String, _ destination: String, _ database: Database) throws -> String {
        func candidate(_ number: Int) -> String {
            number == 1 ? key : KeyTemplate.disambiguated(key, number: number)
        }
        func isTaken(_ number: Int) throws -> Bool { try self.isTaken(candidate(number), destination, database) }
        var last = 0
        var free = 1
        while try isTaken(free) { (last, free) = (free, free * 2) }
        while free - last > 1 {
            let middle = (last + free) / 2
            if try isTaken(middle) { last = middle } else { free = middle }
        }
        return candidate(free)
    }

    /// Whether a delivery to the destination has or had the key.
    static func isTaken(_ key: String, _ destination: String, _ database: Database) throws -> Bool {
        try database.exists(
            used + " UNION ALL SELECT 1 FROM spent_key WHERE destination = ?1 AND key = ?2", destination, key)
    }

    /// The same without names that were given up, or refused.
    static func isUsed(_ key: String, _ destination: String, _ database: Database) throws -> Bool {
        try database.exists(used, destination, key)
    }

    private static let used = """
        SELECT 1 FROM delivery WHERE destination = ?1 AND key = ?2
        UNION ALL SELECT 1 FROM history_delivery
            WHERE destination = (SELECT id FROM history_word WHERE word = ?1) AND key = ?2
        """

    /// Records files as delivered and finished, in one transaction. Sends no notice and never touches their sources. An
    /// adopted file proves nothing for others of the same content.
    ///
    /// - Returns: the outcomes, in the files' order.
    package func adopt(
        _ adoptions: [FileAdoption], at now: WallTime
    ) async throws(JournalError) -> [FileAdoption.Outcome] {
        try await commit { database in try adoptions.map { try Self.adopt($0, now, database) } }
    }

    /// Whether a file was adopted rather than sent.
    package func isAdopted(_ id: Int64) async throws(JournalError) -> Bool {
        guard let job = try await job(id), job.file.state == .delivered else { return false }
        return job.deliveries.contains { $0.proof?.method == .adopted }
    }

    private static func adopt(
        _ adoption: FileAdoption, _ now: WallTime, _ database: Database
    ) throws -> FileAdoption.Outcome {
        let arrival = adoption.arrival
        if try obstacle(remembered(arrival, database), to: arrival, now, database) != nil { return .known }
        let keys = adoption.plan.map { plan in plan.destinations.map { ($0, plan.key(at: $0)) } } ?? []
        let places = try keys.map { ($0, try freeKey($1, $0, database)) }
        if adoption.needsKey, zip(keys, places).contains(where: { $0.1 != $1.1 }) { return .keyTaken }
        let id = try insert(newFile(adoption, now), database)
        for (destination, place) in places {
            var delivery = NewDelivery(file: id, destination: destination, nextAt: now.milliseconds)
            delivery.key = place
            let proof = Proof(key: place, size: arrival.identity.size, method: .adopted)
            try database.change(
                "UPDATE delivery SET state = 'delivered', proof = ?, ended_at = ? WHERE id = ?",
                try JSON.encode(proof), now, try insert(delivery, database))
        }
        return .adopted(id: id)
    }

    private static func newFile(_ adoption: FileAdoption, _ now: WallTime) -> FileRow {
        let plan = adoption.plan
        let policy = FilePolicy(onSuccess: .keep, onFailure: .keep, retry: plan?.retry ?? RetryPolicy())
        var file = FileRow(adoption.arrival, route: plan?.route, policy: policy, mediaType: plan?.mediaType, at: now)
        (file.state, file.endedAt, file.finishedAt, file.disposition) = (.delivered, now, now, Disposition.kept)
        (file.category, file.role, file.labels) = (plan?.category, adoption.role?.rawValue, plan?.labels ?? [:])
        return file
    }

    /// The number of pending files and their total size; triggers keep both, so nothing is counted here.
    package func pending() async throws(JournalError) -> (files: Int, bytes: Int64) {
        try await read { try Self.pending($0) }
    }

    private static func pending(_ database: Database) throws -> (files: Int, bytes: Int64) {
        try database.row("SELECT files, bytes FROM tally WHERE state = 'pending'") {
            ($0.int(0), $0.integer(1))
        } ?? (0, 0)
    }

    /// Whether the queue has room for a file with its companions.
    ///
    /// Members of an open unit are always admitted: the unit's files wait for each other, and would wait for ever.
    static func hasRoom(
        for admission: FileAdmission, _ limit: QueueLimit, _ isFull: Bool, _ besides: (files: Int, bytes: Int64),
        _ database: Database
    ) throws -> Bool {
        let arrival = admission.arrival
        if let unit = admission.unit, let route = admission.plan?.route,
            try openBatch(arrival.root, unit, route, database) != nil
        {
            return true
        }
        if isFull { return false }
        let size = admission.companions.reduce(arrival.identity.size) { $0 + $1.arrival.identity.size }
        let pending = try pending(database)
        return limit.takes(
            files: 1 + admission.companions.count, bytes: size,
            besides: (pending.files + besides.files, pending.bytes + besides.bytes))
    }
}
