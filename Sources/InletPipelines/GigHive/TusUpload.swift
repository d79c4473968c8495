internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Sends a file by tus and has it filed; continues where an earlier attempt was interrupted.
extension GigHiveJob {
    func deliverByTus(_ earlier: GigHiveNotes) async throws(DeliveryError) -> DeliveryOutcome {
        var notes = earlier
        var isFirstRound = true
        while true {
            if let ended = try await round(&notes) { return ended }
            // The server has lost the bytes.
            guard !notes.isSecond, isFirstRound else {
                throw DeliveryError(
                    .giveUp, .uploadGone,
                    "\(name.display): the server lost the bytes of its upload twice; look at its disk and its log")
            }
            attempt.meter.add(-size)
            isFirstRound = false
            notes.isSecond = true
            try await begin(&notes)
        }
    }

    /// Sends missing bytes and finalizes; nil when the server reports the bytes as missing.
    private func round(_ notes: inout GigHiveNotes) async throws(DeliveryError) -> DeliveryOutcome? {
        if notes.sent == nil {
            do throws(DeliveryError) {
                notes.sent = try await send(&notes)
                try checkSource()
            } catch {
                throw try await concluding(error, &notes)
            }
            notes.mayBeVisible = true
            try await attempt.checkpoint.put(notes.sentNote.merging(notes.offsetNote) { $1 })
        }
        if attempt.isStopping() { throw .stopping }
        return try await finish(&notes)
    }

    // MARK: - Sending

    /// Sends all bytes to the server. - Returns: the file's SHA-256.
    private func send(_ notes: inout GigHiveNotes) async throws(DeliveryError) -> Digest {
        let known = notes.upload != nil
        if !known { try await open(&notes) }
        do throws(DeliveryError) {
            return try await sendRest(&notes, isOpen: !known)
        } catch {
            guard error.code == .uploadGone, known else { throw error }
        }
        // All bytes were sent, so the file may be filed already: finalizing tells.
        if notes.offset == size { return try await hashed(RunningHash(), to: size).get().digest }
        try await begin(&notes)
        try await open(&notes)
        return try await sendRest(&notes, isOpen: true)
    }

    /// - Parameter isOpen: just opened, so the server need not be asked for its offset.
    private func sendRest(_ notes: inout GigHiveNotes, isOpen: Bool) async throws(DeliveryError) -> Digest {
        let (ends, sending) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
        let source = try self.source
        // It begins at the start, whatever an earlier attempt has sent: no hash outlives a process. A failure to send
        // ends the scope, and with it the hashing.
        async let hashed = Result<_, DeliveryError>(
            of: try await SourceDigests.sha256(of: source, behind: ends, on: hashing))
        try await sendChunks(&notes, isOpen: isOpen) { sending.yield($0) }
        sending.finish()
        return try await hashed.get()
    }

    /// - Parameter begins: receives the end of each chunk before it is sent.
    private func sendChunks(
        _ notes: inout GigHiveNotes, isOpen: Bool, begins: (_ end: Int64) -> Void
    ) async throws(DeliveryError) {
        let upload = notes.upload ?? ""
        // nil means that the server must be asked; the second counts the server's bytes in the attempt's meter.
        var (place, counted): (Int64?, Int64) = (isOpen ? 0 : nil, 0)
        func found(_ offset: Int64, sent: Int64 = 0) {
            attempt.meter.add(offset - counted - sent)
            (place, counted) = (offset, offset)
        }
        // Written while the next chunk is being sent: a restart asks the server anyway.
        var news: [String: [UInt8]] = [:]
        var failed = 0
        while place != size {
            if attempt.isStopping() { throw .stopping }
            do throws(DeliveryError) {
                guard let offset = place else {
                    found(try await tus.offset(of: upload, length: size))
                    continue
                }
                let end = min(offset + api.settings.chunkSize, size)
                begins(end)
                try await chunk(offset..<end, of: upload, noting: news) { found($0, sent: end - offset) }
                try checkSource()
                notes.offset = place ?? end
                news = notes.offsetNote
                failed = 0
            } catch {
                failed += 1
                // The sent bytes are gone with the upload.
                if error.code == .uploadGone { found(0) }
                place = nil
                try await Retrying.pauseSending(after: failed, error, attempt, final: [.uploadGone]) {
                    () throws(DeliveryError) in try checkSource()
                }
            }
        }
    }

    /// Sends one chunk.
    /// - Parameter sent: receives the number of bytes that the server has by then.
    private func chunk(
        _ range: Range<Int64>, of upload: String, noting news: [String: [UInt8]], sent: (_ offset: Int64) -> Void
    ) async throws(DeliveryError) {
        async let noted = note(news)
        let source = try self.source
        source.adviseSequential(offset: range.lowerBound, length: Int64(range.count))
        let offset = try await tus.send(
            range, of: source, to: upload, length: size, meter: attempt.meter)
        sent(offset)
        try await noted.get()
    }

    private func note(_ news: [String: [UInt8]]) async -> Result<Void, DeliveryError> {
        news.isEmpty ? .success(()) : await Result(of: try await attempt.checkpoint.put(news))
    }

    private func open(_ notes: inout GigHiveNotes) async throws(DeliveryError) {
        if attempt.isStopping() { throw .stopping }
        let upload = try await tus.create(length: size, fileName: name.bytes, mediaType: mediaType)
        notes.upload = upload
        do throws(DeliveryError) {
            try await attempt.checkpoint.put(notes.uploadNote)
        } catch {
            // Otherwise nobody would know it any more.
            await bestEffort(try await tus.delete(upload))
            throw error
        }
    }

    /// Forgets the upload, which no longer exists.
    private func begin(_ notes: inout GigHiveNotes) async throws(DeliveryError) {
        try checkSource()
        notes.forgetUpload()
        try await attempt.checkpoint.replace(notes.lasting)
    }

    /// The effect of a failed attempt on the upload: it stays for the next one, unless the file has changed. If it
    /// cannot be dropped now, the notes stay, and `abandon` does it.
    private func concluding(
        _ cause: DeliveryError, _ notes: inout GigHiveNotes
    ) async throws(DeliveryError) -> DeliveryError {
        guard cause.verdict == .sourceChanged || cause.verdict == .sourceGone, let upload = notes.upload else {
            return cause
        }
        do {
            try await tus.drop(upload)
        } catch {
            // As said above.
            return cause
        }
        notes.forgetUpload()
        try await attempt.checkpoint.replace(notes.lasting)
        return cause
    }
}

/// Has the server file a complete upload. The bytes are never sent again because the server is slow: while it is not
/// ready, the delivery waits without a worker, up to `finalize_for`.
extension GigHiveJob {
    /// The waits after the first, second… try; the last one repeats.
    private static let waits: [Duration] = [
        .milliseconds(400), .seconds(1), .seconds(2), .seconds(5), .seconds(10), .seconds(20), .seconds(30),
    ]

    /// nil when the bytes are missing and must be sent again.
    func finish(_ notes: inout GigHiveNotes) async throws(DeliveryError) -> DeliveryOutcome? {
        guard let upload = notes.upload, let digest = notes.sent else {
            throw DeliveryError(.giveUp, .internalFault, "\(name.display): there is no upload to finalize")
        }
        let request = api.finalize(upload, fields)
        let response = try await api.service.answer(to: request)
        let verdict = GigHiveVerdict(response, at: .finalize)
        switch verdict {
        case .done, .duplicate:
            let reply = try await accept(response, request)
            // Bytes that another event already had stay in the upload; a filed file is gone from it.
            if reply.deleteToken == nil { await bestEffort(try await tus.delete(upload)) }
            do throws(DeliveryError) {
                return .delivered(try await proof(reply, digest))
            } catch {
                if [.sourceChanged, .sourceGone].contains(error.verdict) || error.code == .corrupted {
                    // A leftover ends by itself at the server; the present error is the one to report.
                    await bestEffort(try await tus.delete(upload))
                }
                throw error
            }
        // The bytes are safe at the server, so passing errors are waited out here.
        case .notYet, .retry(.serverError), .retry(.timedOut), .retry(.throttled), .retry(.conflict):
            return .waiting(until: try await putOff(&notes, upload, response))
        // Concurrent calls can cause this too, and the next one settles it.
        case .sendAgain where notes.missing == 0:
            notes.missing += 1
            return .waiting(until: try await putOff(&notes, upload, response))
        case .sendAgain: return nil
        default:
            throw verdict.error(
                response, "finalizing \(name.display) at \(request.url.redacted)")
        }
    }

    /// Notes one more failed try. - Returns: when the next is due.
    private func putOff(
        _ notes: inout GigHiveNotes, _ upload: String, _ response: HTTPResponse
    ) async throws(DeliveryError) -> WallTime {
        let bound = api.settings.finalizeFor
        let isOver = notes.waited >= bound.milliseconds
        let asked = min(response.retryAfter(now: .now) ?? .zero, .seconds(60))
        let wait = max(Self.wait(after: notes.tries), asked)
        notes.tries += 1
        notes.waited += wait.milliseconds
        notes.stuckSince = isOver ? .now : nil
        // A person's retry has the full time again.
        if isOver { (notes.waited, notes.tries, notes.missing) = (0, 0, 0) }
        try await attempt.checkpoint.put(notes.finalizeNote)
        guard isOver else { return .now + wait }
        let said = GigHiveErrorBody(response).text
        let cause =
            said.contains("hook output has not been written")
            ? "server hook not running: tusd's post-finish hook is missing or not executable there" : said
        throw DeliveryError(
            .giveUp, .conflict,
            "\(name.display): the server did not file the bytes in \(DurationText.format(bound)) (\(cause)). Mend the "
                + "server, then run 'inlet queue retry', which within \(DurationText.format(GigHiveNotes.keptWhenStuck)) "
                + "sends nothing again. All bytes are at \(api.settings.url.redacted) as upload \(upload)")
    }

    /// Between half of the step and all of it.
    private static func wait(after tries: Int) -> Duration {
        let longest = waits[min(tries, waits.count - 1)].milliseconds
        return .milliseconds(Int64.random(in: longest / 2...longest))
    }
}

/// tus 1.0.0 (tus.io/protocols/resumable-upload): the core protocol, creation and termination. Every call is one request.
struct Tus: Sendable {
    let api: GigHiveAPI

    static let version = "1.0.0"

    /// Opens an upload of `length` bytes. - Returns: its id.
    func create(length: Int64, fileName: [UInt8], mediaType: String) async throws(DeliveryError) -> String {
        let what = "creating an upload at \(files.redacted)"
        let fields: HTTPFields = [
            ("Upload-Length", String(length)),
            ("Upload-Metadata", Self.metadata([("filename", fileName), ("filetype", Array(mediaType.utf8))])),
        ]
        let response = try await call(HTTPRequest("POST", files, headers: Self.headers + fields), what)
        guard response.status == 201, let location = response.header("Location") else {
            throw GigHiveVerdict.done.error(response, what)
        }
        do throws(DeliveryError) {
            return try Self.id(location, below: files)
        } catch {
            throw error.redacted(by: response.redactor)
        }
    }

    func offset(of upload: String, length: Int64) async throws(DeliveryError) -> Int64 {
        let what = "looking up the upload at \(files.redacted)"
        let response = try await call(HTTPRequest("HEAD", url(upload), headers: Self.headers), what)
        guard let offset = Self.offset(response, length) else {
            throw .misunderstood("\(what): the answer has no usable Upload-Offset", response.status)
        }
        if let total = response.header("Upload-Length"), total != String(length) {
            throw DeliveryError(
                .retry(after: nil), .uploadGone, "\(what): it is one of \(total) bytes, not of \(length)")
        }
        return offset
    }

    /// Sends the bytes of `range`. - Returns: the number that the server has then.
    func send(
        _ range: Range<Int64>, of source: SourceFile, to upload: String, length: Int64, meter: TransferMeter
    ) async throws(DeliveryError) -> Int64 {
        let what = "sending bytes \(range.lowerBound) to \(range.upperBound) of \(length)"
        let fields: HTTPFields = [
            ("Upload-Offset", String(range.lowerBound)), ("Content-Type", "application/offset+octet-stream"),
        ]
        let request = HTTPRequest(
            "PATCH", url(upload), headers: Self.headers + fields,
            body: .slice(source, offset: range.lowerBound, length: Int64(range.count)), answerDeadline: .seconds(120))
        let response = try await call(request, what, meter: meter)
        // Any other offset means that nothing of this arrived, or something else; it must not keep us here.
        guard let offset = Self.offset(response, length), offset > range.lowerBound, offset <= range.upperBound else {
            meter.add(-Int64(range.count))
            throw .misunderstood("\(what): the answer has no usable Upload-Offset", response.status)
        }
        return offset
    }

    /// Drops the upload with its bytes. A missing one counts as dropped.
    func delete(_ upload: String) async throws(DeliveryError) {
        let what = "dropping an upload at \(files.redacted)"
        try await DeliveryError.ignoring(
            .uploadGone, in: await call(HTTPRequest("DELETE", url(upload), headers: Self.headers), what))
    }

    /// Drops the upload, waiting a moment for a server that still holds an aborted request.
    func drop(_ upload: String) async throws(DeliveryError) {
        for wait in [Duration.milliseconds(200), .seconds(1), nil] {
            do throws(DeliveryError) {
                return try await delete(upload)
            } catch {
                // A cancelled task waits no longer, and the error stands.
                guard error.code == .conflict, let wait, await Task.rest(for: wait) else { throw error }
            }
        }
    }

    private var files: HTTPURL { api.settings.url.appending(path: "files/") }

    private func url(_ upload: String) -> HTTPURL { api.settings.url.appending(path: "files/\(upload)") }

    private static let headers: HTTPFields = [("Tus-Resumable", version)]

    private func call(
        _ request: HTTPRequest, _ what: String, meter: TransferMeter? = nil
    ) async throws(DeliveryError) -> HTTPResponse {
        try await api.service.send(request, meter: meter) { GigHiveVerdict($0, at: .files).error($0, what) }
    }

    /// The number of bytes of an upload of `length` that a server claims to have; nil for an impossible one.
    static func offset(_ response: HTTPResponse, _ length: Int64) -> Int64? {
        response.header("Upload-Offset").flatMap { Int64($0) }.flatMap { (0...length).contains($0) ? $0 : nil }
    }

    /// `Upload-Metadata`: names and base64 values.
    static func metadata(_ pairs: [(String, [UInt8])]) -> String {
        pairs.map { "\($0.0) \(Data($0.1).base64EncodedString())" }.joined(separator: ",")
    }

    /// The upload's id in a `Location`, which must be `files` itself followed by the id: credentials go nowhere else.
    /// Only the scheme may differ, which servers behind a TLS proxy get wrong; ours is always used.
    static func id(_ location: String, below files: HTTPURL) throws(DeliveryError) -> String {
        var path = location[...]
        if !location.hasPrefix("/") {
            let url: HTTPURL
            do {
                // The text compared here is never connected to.
                url = try HTTPURL(location, rules: .configured(allowHTTP: true))
            } catch {
                throw DeliveryError(error)
            }
            let isDefault = url.port == (url.scheme == "https" ? 443 : 80)
            let isOurs = url.port == files.port || isDefault && files.port == (files.scheme == "https" ? 443 : 80)
            guard url.host == files.host, isOurs else {
                throw DeliveryError(
                    .giveUp, .forbiddenURL,
                    "the server put the upload at \(url.redacted), which is not below \(files.redacted)",
                    heard: StepFailure(201, .everybody))
            }
            path = url.path[...]
        }
        let id = path.hasPrefix(files.path) ? path.dropFirst(files.path.count) : ""
        guard isID(id) else {
            throw DeliveryError(
                .giveUp, .forbiddenURL, "the server put the upload at a place that is not below \(files.redacted)",
                heard: StepFailure(201, .everybody))
        }
        return String(id)
    }

    static func isID(_ text: some StringProtocol) -> Bool {
        (1...200).contains(text.utf8.count) && text.utf8.allSatisfy { ServiceClient.idBytes.contains($0) }
    }
}
