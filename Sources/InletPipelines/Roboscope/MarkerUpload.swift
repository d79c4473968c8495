internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// A file of markers: read, checked, its session resolved, imported.
extension RoboscopeJob {
    /// Larger files are read one at a time, so that memory is bounded whatever the number of connections.
    private static let large = 4 << 20

    func importMarkers() async throws(DeliveryError) -> DeliveryOutcome {
        guard order.source.size > Self.large else { return try await readMarkers() }
        return try await KeyedMutex.shared.alone("markers of \(order.destination)") { () throws(DeliveryError) in
            try await readMarkers()
        }
    }

    private func readMarkers() async throws(DeliveryError) -> DeliveryOutcome {
        let bytes = try await content(limit: MarkerFile.longest)
        try checkSource()
        let digest = await pool.run { Checksum.sha256(bytes) }
        let json = try await self.json(bytes, FilePath(root: nil, path.lastComponent.map { [$0] } ?? []))
        let file: MarkerFile
        do throws(DeliveryError) {
            file = try await pool.run { () throws(DeliveryError) in try MarkerFile(json, digest: digest) }
        } catch {
            throw DeliveryError(.giveUp, .rejected, "\(shown): \(error.reason); nothing was sent")
        }
        return try await send(file)
    }

    private func send(_ file: MarkerFile) async throws(DeliveryError) -> DeliveryOutcome {
        try checkStopping()
        let session = try await resolve(file)
        let tally = ConfirmedMarkers(attempt.checkpoint.entries, session: session, count: file.count)
        try await attempt.checkpoint.put([ConfirmedMarkers.note: tally.bytes])
        return try await KeyedMutex.shared.alone("markers in \(session) at \(server)") { () throws(DeliveryError) in
            try await SessionWatch(job: self, session: session).whileWriting { () async throws(DeliveryError) in
                try await MarkerUpload(job: self, file: file, session: session).run(tally)
                try await end(session, file)
                let details = [
                    "session_id": session, "markers": String(file.count),
                    "ingest_id": "\(file.digest.hex)#0...\(file.count - 1)",
                ]
                return proof(details, content: ContentHash(digest: file.digest, partSize: nil))
            }
        }
    }

    /// The id of the markers' session: the one that the file names, the unit's, or one for this content.
    private func resolve(_ file: MarkerFile) async throws(DeliveryError) -> String {
        if let id = file.session {
            let there = try await api.object(.sessions, id)
            return there.id.isEmpty ? id : there.id
        }
        if let noted = ConfirmedMarkers.session(attempt.checkpoint.entries) {
            // Only the server's own statement loses a session: after any other error its markers would go to a second
            // one.
            let there = try await DeliveryError.ignoring(
                .notFound, in: await api.object(.sessions, noted))
            if there != nil { return noted }
            if let batch = order.batch { cache.remember(nil, of: Self.stamp(batch)) }
        }
        if let batch = order.batch, file.space == nil { return try await session(of: batch) }
        let plan = SessionPlan(
            stamp: "markers:\(file.digest.hex)", space: file.space, type: file.plan.type ?? fields.sessionType,
            startedAt: WallTime(nanoseconds: order.source.modified), meta: file.plan.meta)
        return try await session(plan).id
    }

    /// A session of the markers' own may need another state than `active`.
    private func end(_ session: String, _ file: MarkerFile) async throws(DeliveryError) {
        guard file.session == nil, order.batch == nil || file.space != nil,
            let status = file.plan.status ?? fields.sessionStatus
        else { return }
        _ = try await api.changing(.sessions, session) { current throws(DeliveryError) in
            guard current.status != status else { return nil }
            var fields: JSONObject = ["status": .string(status)]
            if ["done", "archived"].contains(status), current.time("completed_at") == nil {
                fields["completed_at"] = .string(WallTime.now.rfc3339Seconds)
            }
            return fields
        }
    }
}

extension RoboscopeJob {
    /// The whole source. - Throws: `.tooLarge` above `limit` bytes.
    func content(limit: Int) async throws(DeliveryError) -> [UInt8] {
        try checkSource()
        guard let opened, order.source.size <= limit else {
            let size = ByteText.format(order.source.size)
            throw DeliveryError(
                .giveUp, .tooLarge, "\(shown) has \(size); at most \(ByteText.format(Int64(limit))) are taken")
        }
        // The guard notices a file that grows meanwhile; it is not read without end.
        let room = Int(order.source.size)
        do {
            return try await pool.run { () throws(SystemError) in try opened.content(limit: room) }
        } catch {
            try checkSource()
            throw DeliveryError(reading: error)
        }
    }
}

/// Imports the markers of a file into a session, each exactly once, even when answers are lost. It lists the session's
/// markers before it sends anything, and again after each request with an unknown result. The journal keeps the
/// confirmed markers; no later attempt sends them again.
struct MarkerUpload: Sendable {
    let job: RoboscopeJob
    let file: MarkerFile
    let session: String

    /// Bytes of one request; servers take 2 MB.
    private static let largestRequest = 1 << 20

    /// - Parameter known: the markers that earlier attempts noted.
    /// - Returns: when the server has them all.
    func run(_ known: ConfirmedMarkers) async throws(DeliveryError) {
        var chunk = job.api.settings.chunk
        var failed = 0
        var most = -1
        var tally = known
        while true {
            try job.checkStopping()
            do throws(DeliveryError) {
                let there = try await inSession()
                let listed = ConfirmedMarkers.set(there.keys.sorted())
                let isHiding = tally.missing(from: listed) > 0
                await note(listed, in: &tally)
                if isHiding { throw hidden(there.count, of: tally.count, isLast: failed + 1 >= Retrying.tries) }
                if there.count > most { (most, failed) = (there.count, 0) }
                report(there.count)
                let missing = (0..<file.count).filter { there[$0] == nil }
                if missing.isEmpty { return try await removeCopies(there) }
                // The first ones show whether the server keeps their stamps.
                try await send(there.count == 0 ? Array(missing.prefix(chunk)) : missing, &chunk, &tally)
            } catch {
                // In a row, without a new marker.
                failed += 1
                try await Retrying.pause(
                    after: failed, error, "waiting to send markers again", isStopping: job.attempt.isStopping)
            }
        }
    }

    /// Markers that the server took but does not list: it drops their stamps, lists only some, or is late, or somebody
    /// deleted them. Another listing may show them; sending them again would duplicate them.
    private func hidden(_ count: Int, of taken: Int, isLast: Bool) -> DeliveryError {
        DeliveryError(
            isLast ? .giveUp : .retry(after: nil), .badAnswer,
            "\(job.shown): session \(session) accepted \(taken) markers, but lists \(count) with their "
                + "'custom_props.ingest_id'. Inlet sends no more, to avoid duplicates. If some were deleted there, "
                + "put the markers still to be sent into a new file")
    }

    // MARK: - Sending

    /// - Parameter tally: receives the confirmations of each answer, and is noted before anything more is sent.
    private func send(
        _ missing: [Int], _ chunk: inout Int, _ tally: inout ConfirmedMarkers
    ) async throws(DeliveryError) {
        var rest = missing[...]
        while !rest.isEmpty {
            try job.checkStopping()
            let markers = request(rest, chunk)
            do throws(DeliveryError) {
                try await send(markers, rest.prefix(markers.count), &tally)
            } catch {
                guard error.code == .tooLarge, markers.count > 1 else { throw error }
                chunk = markers.count / 2
                // Sent one by one, some of them may have been accepted.
                rest = rest.drop { tally.taken.contains($0) }
                continue
            }
            rest = rest.dropFirst(markers.count)
            report(tally.count)
        }
    }

    /// The texts of the next markers: as many as fit into one request.
    private func request(_ numbers: ArraySlice<Int>, _ chunk: Int) -> [[UInt8]] {
        var markers: [[UInt8]] = []
        var size = 0
        for number in numbers.prefix(chunk) {
            let text = JSONValue.object(file.marker(number, session: session)).bytes
            size += text.count + 1
            if size > Self.largestRequest, !markers.isEmpty { break }
            markers.append(text)
        }
        return markers
    }

    /// - Parameter numbers: of the markers, in the same order.
    private func send(
        _ markers: [[UInt8]], _ numbers: ArraySlice<Int>, _ tally: inout ConfirmedMarkers
    ) async throws(DeliveryError) {
        if !job.cache.lacks(.bulk) {
            do throws(DeliveryError) {
                let made = try await job.api.create(markers: markers)
                guard made.count == markers.count else {
                    throw .misunderstood(
                        "\(job.shown): \(markers.count) markers were sent, and \(made.count) came back")
                }
                return await note(ConfirmedMarkers.set(numbers), in: &tally)
            } catch {
                guard error.code == .notFound else { throw error }
                // Either the call or the session does not exist.
                _ = try await job.api.object(.sessions, session)
                job.cache.note(lacking: .bulk)
            }
        }
        for (marker, number) in zip(markers, numbers) {
            try job.checkStopping()
            try await job.api.create(marker: marker)
            await note(ConfirmedMarkers.set([number]), in: &tally)
        }
    }

    /// The journal must know an acceptance before the next request, since it cannot be taken back.
    private func note(_ numbers: RangeSet<Int>, in tally: inout ConfirmedMarkers) async {
        guard tally.add(numbers) else { return }
        await job.attempt.checkpoint.putPersistently([ConfirmedMarkers.note: tally.bytes])
    }

    private func report(_ count: Int) {
        let percent = file.count == 0 ? 100 : Double(count) * 100 / Double(file.count)
        job.attempt.report(StepProgress(percent: percent, step: "\(count) of \(file.count) markers"))
    }

    // MARK: - What is there

    /// One marker of the file at the server, its corners as text.
    typealias Copy = (id: String, created: WallTime?, corners: String)

    /// The file's markers on the server, by number; more than one where a request was done twice.
    private func inSession() async throws(DeliveryError) -> [Int: [Copy]] {
        var there: [Int: [Copy]] = [:]
        try await job.api.each(.markers, [("work_session_id", session)]) { marker in
            guard let index = marker.ingestID.flatMap({ file.index(of: $0) }),
                marker.text("work_session_id").map({ RoboscopeAPI.areSameID($0, session) }) ?? true
            else { return }
            let corners = JSONValue.array(MarkerFile.corners.map { marker.fields[$0] ?? .null }).text
            there[index, default: []].append((marker.id, marker.createdAt, corners))
        }
        return there
    }

    /// A request that was aborted, and looked up too early, may still have been done. The later of two equal markers
    /// with one stamp is deleted.
    private func removeCopies(_ there: [Int: [Copy]]) async throws(DeliveryError) {
        for extra in there.values.flatMap(Self.extras) where !extra.isEmpty {
            try await DeliveryError.ignoring(.notFound, in: await job.api.remove(.markers, extra))
        }
    }

    /// Ids of all but the oldest of equal copies.
    static func extras(_ copies: [Copy]) -> [String] {
        guard copies.count > 1 else { return [] }
        let sorted = copies.sorted {
            ($0.created?.milliseconds ?? .max, $0.id) < ($1.created?.milliseconds ?? .max, $1.id)
        }
        return sorted.dropFirst().filter { $0.corners == sorted[0].corners }.map(\.id)
    }
}

/// The markers of a file that the server accepted: it reported that it created them, or listed them.
///
/// Kept in the journal, so that no later attempt sends one of them again, whatever the server lists by then.
struct ConfirmedMarkers: Sendable, Equatable {
    /// The one note that the journal keeps after a failed delivery, for `queue retry`. Its value is the session's id,
    /// followed by the markers' numbers: `ID 0-99 200-299`.
    static let note = CheckpointName.mayBeVisible

    /// The session of the numbers.
    let session: String
    private(set) var taken = RangeSet<Int>()

    init(session: String) { self.session = session }

    /// The markers noted for a session; none for another session, and for an unreadable note.
    ///
    /// - Parameter count: markers in the file; ignores higher numbers.
    init(_ entries: [String: [UInt8]], session: String, count: Int) {
        self.init(session: session)
        let words = Self.words(entries)
        guard let noted = words.first, RoboscopeAPI.areSameID(noted, session) else { return }
        for word in words.dropFirst() {
            let ends = word.split(separator: "-").compactMap { Int($0) }
            guard ends.count == 2, 0 <= ends[0], ends[0] <= ends[1], ends[1] < count else { continue }
            taken.insert(contentsOf: ends[0]..<ends[1] + 1)
        }
    }

    /// The session that an earlier attempt sent to, or was about to.
    static func session(_ entries: [String: [UInt8]]) -> String? { words(entries).first }

    private static func words(_ entries: [String: [UInt8]]) -> [String] {
        String(decoding: entries[note] ?? [], as: UTF8.self).split(separator: " ").map { String($0) }
    }

    var bytes: [UInt8] {
        let ranges = taken.ranges.map { "\($0.lowerBound)-\($0.upperBound - 1)" }
        return Array(([session] + ranges).joined(separator: " ").utf8)
    }

    var count: Int { Self.count(taken) }

    /// - Returns: whether any of them is newly known to be accepted.
    mutating func add(_ numbers: RangeSet<Int>) -> Bool {
        let before = taken
        taken.formUnion(numbers)
        return taken != before
    }

    /// Fastest for ascending numbers.
    static func set(_ numbers: some Sequence<Int>) -> RangeSet<Int> {
        numbers.reduce(into: RangeSet()) { $0.insert(contentsOf: $1..<$1 + 1) }
    }

    /// The number of accepted markers that are not listed.
    func missing(from listed: RangeSet<Int>) -> Int { Self.count(taken.subtracting(listed)) }

    private static func count(_ set: RangeSet<Int>) -> Int { set.ranges.reduce(0) { $0 + $1.count } }
}
