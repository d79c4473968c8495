package import InletCore
package import InletLinux
internal import InletTransfer

/// Delivers to a bucket of any S3 store: one PUT for small files, resumable multipart uploads for larger ones.
package struct S3Pipeline: PartPipeline {
    let settings: S3Settings
    let api: S3API
    let hashing: HashLanes
    let lane = UploadLane()
    let pace = BurstPace()

    init(settings: S3Settings, client: HTTPClient, hashing: BlockingPool, knowledge: S3StoreKnowledge) {
        self.settings = settings
        self.hashing = HashLanes(on: hashing)
        api = S3API(settings: settings, client: client, knowledge: knowledge)
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        var attempt = attempt
        var chosen = VersionedKey(order.key, attempt.checkpoint.entries)
        let proving = try await proving(attempt.checkpoint.entries)
        while true {
            let delivery = S3Delivery(self, source, chosen, order, attempt, proving)
            do throws(DeliveryError) {
                return .delivered(try await delivery.run())
            } catch {
                // It was seen to have MD5s as ETags, or was not asked.
                if error.code == .foreignETag { api.knowledge.forget(proving) }
                guard error.code == .destinationExists else { throw error }
                if let proof = try await delivery.ownObject() { return .delivered(proof) }
                guard settings.ifExists == .version else { throw Self.taken(chosen.key, error) }
                chosen = try await delivery.nextFree()
                // Before anything is sent: a later attempt must not make a second object.
                let notes = UploadRecord.lasting(attempt.checkpoint.entries).merging(chosen.notes) { $1 }
                try await attempt.checkpoint.replace(notes)
                attempt.checkpoint = attempt.checkpoint.replaced(with: notes)
                attempt.meter.add(-attempt.bytesSent)
            }
        }
    }

    func store(_ order: DeliveryOrder, _ notes: [String: [UInt8]]) -> any PartStore {
        var order = order
        order.key = VersionedKey(order.key, notes).key
        return S3Store(api: api, order: order, proving: begun(notes) ?? S3Proving(.md5))
    }

    /// How an open upload was begun; nil where there is none. One without a note of it was opened without a checksum,
    /// or by an earlier version with the configured one.
    private func begun(_ notes: [String: [UInt8]]) -> S3Proving? {
        guard let upload = UploadRecord.upload(notes) else { return nil }
        if let checksum = upload.checksum { return S3Proving(checksum) }
        return S3Proving([.auto, .crc64nvme].contains(settings.verify) ? .md5 : settings.verify)
    }

    /// How a new delivery is proved, as far as that is known without asking the store.
    var knownProving: S3Proving? {
        guard settings.verify == .auto else { return S3Proving(settings.verify) }
        return api.knowledge.checksums.valid(at: api.knowledge.address).map { S3Proving($0) }
    }

    private func proving(_ notes: [String: [UInt8]]) async throws(DeliveryError) -> S3Proving {
        if let begun = begun(notes) { return begun }
        guard settings.verify == .auto else { return S3Proving(settings.verify) }
        let knowledge = api.knowledge
        return S3Proving(
            try await knowledge.checksums.learned(at: knowledge.address) { () async throws(DeliveryError) in
                var trial = S3ChecksumTrial(api)
                return try await trial.run()
            })
    }

    /// Asks the store anew, whatever is known of it. - Returns: the lines of `inlet check`.
    func askAgain() async throws(DeliveryError) -> [SettingFinding] {
        var trial = S3ChecksumTrial(api)
        let result = try await trial.run()
        await api.knowledge.checksums.keep(result, at: api.knowledge.address)
        return result.findings
    }

    /// Lists one key at most. Keys that may only write pass, too.
    package func probe() async throws(DeliveryError) -> String {
        api.keyring.forget()
        let place = "\(settings.base.redacted), region \(settings.region)"
        do throws(DeliveryError) {
            _ = try await api.page("", limit: 1)
            return "\(place) answers"
        } catch {
            guard error.isDenied else { throw error }
            return "\(place) answers, but these keys may not list it"
        }
    }

    /// The pin of the server's current key, as `pin:` takes it; nil without TLS, and where the certificate is trusted
    /// anyway.
    package func serverPin() async throws(DeliveryError) -> String? {
        if settings.trust.pin == nil {
            do throws(DeliveryError) {
                _ = try await probe()
                return nil
            } catch {
                guard error.code == .tlsFailed else { throw error }
            }
        }
        return try await api.client.serverPin(of: settings.base)
    }

    private static func taken(_ key: String, _ error: DeliveryError) -> DeliveryError {
        DeliveryError(
            .giveUp, .destinationExists,
            "another object has the key '\(DisplayText.escape(key))' (if_exists: fail); it was not overwritten; "
                + "rename one of them, then retry")
    }
}

/// The key of a delivery where `if_exists: version` may choose another. Journaled before use.
struct VersionedKey: Sendable, Equatable {
    /// Beyond this, the cause is something other than versions.
    static let mostVersions = 10_000

    /// As frozen at admission.
    let original: String
    let number: Int

    var key: String { number == 1 ? original : KeyTemplate.disambiguated(original, number: number) }

    /// The note for the checkpoint; the original key needs none.
    var notes: [String: [UInt8]] { number == 1 ? [:] : [UploadRecord.chosenName: Array("\(number)".utf8)] }

    init(_ original: String, number: Int = 1) {
        self.original = original
        self.number = number
    }

    init(_ original: String, _ entries: [String: [UInt8]]) {
        let noted = entries[UploadRecord.chosenName].flatMap { Int(String(decoding: $0, as: UTF8.self)) }
        self.init(original, number: noted.flatMap { (2...Self.mostVersions).contains($0) ? $0 : nil } ?? 1)
    }

    /// nil when there are too many.
    var next: VersionedKey? { number < Self.mostVersions ? VersionedKey(original, number: number + 1) : nil }
}

/// One attempt to deliver under one key. A reference type: copying its many values into every step would cost more than
/// signing the request.
final class S3Delivery: Sendable {
    private let settings: S3Settings
    private let chosen: VersionedKey
    private let order: DeliveryOrder
    private let attempt: Attempt
    private let store: S3Store
    private let sender: PartSender

    init(
        _ pipeline: S3Pipeline, _ source: SourceFile, _ chosen: VersionedKey, _ order: DeliveryOrder,
        _ attempt: Attempt, _ proving: S3Proving
    ) {
        settings = pipeline.settings
        self.chosen = chosen
        self.attempt = attempt
        var order = order
        order.key = chosen.key
        self.order = order
        store = S3Store(api: pipeline.api, order: order, proving: proving)
        var slices = proving.slices(isEncrypted: settings.base.scheme == "https")
        if settings.verify == .auto {
            slices.remedy =
                "let these keys put, read and delete objects below \(S3ChecksumTrial.folder), so that Inlet finds a "
                + "checksum that the store compares; to compare lengths only, set 'verify: size' on this destination"
        }
        sender = PartSender(
            client: pipeline.api.client, source: source, order: order, attempt: attempt, hashing: pipeline.hashing,
            lane: pipeline.lane, proof: slices)
    }

    /// An open upload continues as it began, even where the threshold was raised since: nothing else would drop it.
    private var isSingle: Bool {
        order.source.size <= settings.multipartThreshold && UploadRecord.identity(attempt.checkpoint.entries) == nil
    }

    private var plan: PartPlan {
        PartPlan(
            fileSize: order.source.size, configured: isSingle ? max(order.source.size, 1) : settings.partSize,
            mostParts: S3Settings.mostParts)
    }

    private var comparison: S3ObjectMatch { store.comparison(plan) }

    /// - Throws: `.destinationExists` when another object has the key, or ours from a request whose answer was lost.
    func run() async throws(DeliveryError) -> Proof {
        if let proof = try await store.checkSource(sender) { return proof }
        if settings.ifExists == .skipSame, let proof = try await existing(),
            proof.content != nil || settings.verify == .size
        {
            return proof
        }
        if isSingle {
            try store.limits.check(order)
            return try await sender.sendWhole(at: store.location(order.key, answered: nil)) { store.wholeTarget }
        }
        // The condition applies when the parts are composed; a taken key is reported now, not after hours.
        if settings.ifExists.keepsOthers, UploadRecord.identity(attempt.checkpoint.entries) == nil,
            try await store.api.look(order.key) != nil
        {
            throw DeliveryError(.giveUp, .destinationExists, "an object has the key '\(order.key)'")
        }
        return try await MultipartUpload(store: store, sender: sender).deliver()
    }

    /// A proof when the object under the key is this very file; nil when there is none, or another.
    func existing() async throws(DeliveryError) -> Proof? {
        let found =
            settings.ifExists == .skipSame
            ? try await store.api.head(order.key, store.proving.algorithm)
            : try await store.api.look(order.key, store.proving.algorithm)
        return if let found { try await store.proof(found, under: order.key, comparison, sender) } else { nil }
    }

    /// A proof when the object in the way is this very file, from a request whose answer was lost.
    func ownObject() async throws(DeliveryError) -> Proof? {
        guard let proof = try await existing(), store.isCertain(proof) else { return nil }
        return proof
    }

    /// The next key without an object, or with this very file from an attempt whose notes are gone.
    func nextFree() async throws(DeliveryError) -> VersionedKey {
        var candidate = chosen
        while let next = candidate.next {
            if attempt.isStopping() { throw .stopping }
            guard let found = try await store.api.look(next.key, store.proving.algorithm) else { return next }
            // The time is compared first: the file is read only for objects that can be ours.
            if comparison.byTime(found) == .same,
                let proof = try await store.proof(found, under: next.key, comparison, sender), store.isCertain(proof)
            {
                return next
            }
            candidate = next
        }
        throw DeliveryError(
            .giveUp, .destinationExists,
            "'\(DisplayText.escape(chosen.original))' has \(VersionedKey.mostVersions) versions already")
    }
}

extension S3Pipeline: ObjectListing {
    package func remove(_ key: String) async throws(DeliveryError) { try await api.delete(key) }

    package var composing: any Pipeline {
        var settings = settings
        settings.multipartThreshold = -1
        return S3Pipeline(
            settings: settings, client: api.client, hashing: hashing.pool, knowledge: api.knowledge)
    }

    package func refusesSecond(_ key: String) async throws(DeliveryError) -> (whole: Bool, composed: Bool)? {
        guard settings.ifExists.keepsOthers else { return nil }
        let bytes = HTTPBody.bytes(Array("inlet check\n".utf8))
        let what = "putting \(api.url(key).redacted) again"
        let whole = try await refuses { () async throws(DeliveryError) in
            let call = S3API.Call(method: "PUT", key: key, headers: S3Store.onlyNew, body: bytes)
            _ = try await api.send(call, what)
        }
        let upload = OpenUpload(id: try await api.create(key, headers: settings.objectHeaders), key: key)
        do throws(DeliveryError) {
            let part = S3API.Call(
                method: "PUT", key: key, query: [("partNumber", "1"), ("uploadId", upload.id)], body: bytes)
            let tag = try await api.send(part, what).header("ETag") ?? ""
            let plan = PartPlan(fileSize: bytes.length, configured: settings.partSize)
            var record = UploadRecord(upload: upload, plan: plan)
            record.parts[1] = UploadRecord.VerifiedPart(etag: tag)
            let isRefused = try await refuses { () async throws(DeliveryError) in
                _ = try await api.complete(record, headers: S3Store.onlyNew)
            }
            if isRefused { try await api.abort(id: upload.id, key: key) }
            return (whole, isRefused)
        } catch {
            // Otherwise nobody would know it any more. The reason it could not be dropped has just been thrown.
            await bestEffort(try await api.abort(id: upload.id, key: key))
            throw error
        }
    }

    private func refuses(_ request: () async throws(DeliveryError) -> Void) async throws(DeliveryError) -> Bool {
        try await DeliveryError.ignoring(.destinationExists, in: await request()) == nil
    }

    package func list(prefix: String, each: @Sendable ([ListedObject]) throws -> Void) async throws {
        var last: String?
        while true {
            let page = try await api.page(prefix, after: last)
            try each(page.objects)
            guard let next = page.next, next != last else { return }
            last = next
        }
    }
}
