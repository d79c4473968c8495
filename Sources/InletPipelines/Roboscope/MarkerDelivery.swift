internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// A file of markers: read, checked, its session resolved, imported.
struct MarkerDelivery: Sendable {
    let job: RoboscopeJob

    /// Files above this are read one at a time, so that memory is bounded whatever the number of connections.
    private static let large = 4 << 20

    func deliver() async throws(DeliveryError) -> DeliveryOutcome {
        guard job.order.source.size > Self.large else { return try await read() }
        return try await KeyedMutex.shared.alone("markers of \(job.order.destination)") { () throws(DeliveryError) in
            try await read()
        }
    }

    private func read() async throws(DeliveryError) -> DeliveryOutcome {
        let bytes = try await job.content(limit: MarkerFile.longest)
        try job.checkSource()
        let digest = await job.pool.run { Checksum.sha256(bytes) }
        let json = try await job.json(bytes, FilePath(root: nil, job.path.lastComponent.map { [$0] } ?? []))
        let file: MarkerFile
        do throws(MarkerFile.Fault) {
            file = try await job.pool.run { () throws(MarkerFile.Fault) in try MarkerFile(json, digest: digest) }
        } catch {
            throw DeliveryError(.giveUp, .rejected, "\(job.shown): \(error.reason); nothing was sent")
        }
        return try await send(file)
    }

    private func send(_ file: MarkerFile) async throws(DeliveryError) -> DeliveryOutcome {
        try job.checkStopping()
        let session = try await resolve(file)
        let tally = MarkerTally(job.attempt.checkpoint.entries, session: session, count: file.count)
        try await job.attempt.checkpoint.put([MarkerTally.note: tally.bytes])
        return try await KeyedMutex.shared.alone("markers in \(session) at \(job.server)") { () throws(DeliveryError) in
            try await SessionWatch(job: job, session: session).whileWriting { () async throws(DeliveryError) in
                try await MarkerImport(job: job, file: file, session: session).run(tally)
                try await end(session, file)
                let proof = Proof(
                    key: job.order.key, size: job.order.source.size, method: .registered,
                    content: ContentHash(digest: file.digest, partSize: nil),
                    details: [
                        "session_id": Redactor([job.api.settings.token].compactMap(\.self)).redacted(session),
                        "markers": String(file.count),
                        "ingest_id": "\(file.digest.hex)#0...\(file.count - 1)",
                    ])
                return .delivered(proof)
            }
        }
    }

    /// The id of the session that the markers go to: the one that the file names, the unit's, or one for this content.
    private func resolve(_ file: MarkerFile) async throws(DeliveryError) -> String {
        if let id = file.session {
            let there = try await job.api.get(RoboscopeSession.self, id)
            return there.id.isEmpty ? id : there.id
        }
        if let noted = MarkerTally.session(job.attempt.checkpoint.entries) {
            // Only a server that says so has lost a session: with any other error its markers would go to a second one.
            let there = try await DeliveryError.ignoring(
                .notFound, in: await job.api.get(RoboscopeSession.self, noted))
            if there != nil { return noted }
            if let batch = job.order.batch { job.memory.remember(nil, of: SessionKeeping.stamp(batch)) }
        }
        if let batch = job.order.batch, file.space == nil { return try await SessionKeeping(job: job).ensure(batch) }
        let plan = SessionKeeping.Plan(
            stamp: "markers:\(file.digest.hex)", space: file.space, type: file.plan.type ?? job.fields.sessionType,
            startedAt: WallTime(nanoseconds: job.order.source.modified), meta: file.plan.meta)
        return try await SessionKeeping(job: job).found(plan).id
    }

    /// A session of the markers' own may be wanted in another state than `active`.
    private func end(_ session: String, _ file: MarkerFile) async throws(DeliveryError) {
        guard file.session == nil, job.order.batch == nil || file.space != nil,
            let status = file.plan.status ?? job.fields.sessionStatus
        else { return }
        _ = try await job.api.changing(RoboscopeSession.self, session) { current throws(DeliveryError) in
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
        // A file that grows meanwhile is seen by its guard, not read without end.
        let room = Int(order.source.size)
        do {
            return try await pool.run { () throws(SystemError) in try opened.content(limit: room) }
        } catch {
            try checkSource()
            throw DeliveryError(reading: error)
        }
    }
}
