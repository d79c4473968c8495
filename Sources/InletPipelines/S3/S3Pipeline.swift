package import InletCore
package import InletLinux
package import InletTransfer
package import SystemPackage

/// Delivers to a bucket of any S3 store: one PUT for small files, resumable multipart uploads for larger ones.
package struct S3Pipeline: Pipeline {
    let settings: S3Settings
    let api: S3API
    let hashing: BlockingPool
    let lane = UploadLane()

    package init(settings: S3Settings, client: HTTPClient, hashing: BlockingPool) {
        self.settings = settings
        self.hashing = hashing
        api = S3API(settings: settings, client: client)
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        var attempt = attempt
        var chosen = ChosenKey(order.key, attempt.checkpoint.entries)
        while true {
            let delivery = S3Delivery(self, source, chosen, order, attempt)
            do throws(DeliveryError) {
                return .delivered(try await delivery.run())
            } catch {
                guard error.code == .destinationExists else { throw error }
                if let proof = try await delivery.ownObject() { return .delivered(proof) }
                guard settings.ifExists == .version else { throw Self.taken(chosen.key, error) }
                chosen = try await delivery.nextFree()
                // Before anything is sent: a later attempt must not make a second object.
                let notes = UploadRecord.lasting(attempt.checkpoint.entries).merging(chosen.notes) { $1 }
                try await attempt.checkpoint.replace(with: notes)
                attempt.checkpoint = attempt.checkpoint.replaced(with: notes)
                attempt.meter.add(-attempt.bytesSent)
            }
        }
    }

    /// The answer to the last complete may have been lost: then what was admitted has arrived, whole.
    package func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        let chosen = ChosenKey(order.key, attempt.checkpoint.entries)
        var order = order
        order.key = chosen.key
        let store = S3Store(api: api, order: order, lastingNotes: chosen.notes)
        let completion = UploadCompletion(store: store, sender: nil, attempt: attempt)
        return try await completion.composedEarlier(order).map { .delivered($0) }
    }

    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        for upload in UploadRecord.uploads(checkpoint) {
            try await api.abort(id: upload.id, key: upload.key)
        }
    }

    /// Lists one key at most. Keys that may only write are not refused here.
    package func probe() async throws(DeliveryError) -> String {
        api.keyring.forget()
        let place = "\(settings.base.redacted), region \(settings.region)"
        do throws(DeliveryError) {
            _ = try await api.page(S3API.ListCursor(prefix: ""), limit: 1)
            return "\(place) answers"
        } catch {
            guard error.code == .unauthorized, error.reason.contains(S3API.denied) else { throw error }
            return "\(place) answers, and does not let these keys list it"
        }
    }

    /// The pin of the key that the server has now, as `pin:` takes it; nil without TLS, and where the certificate is trusted
    /// without one.
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

/// The key that a delivery goes to, where `if_exists: version` may choose another one. Journaled before it is used.
struct ChosenKey: Sendable, Equatable {
    static let noteName = "key"
    /// Beyond this something else than versions is going on.
    static let mostVersions = 10_000

    /// As frozen at admission.
    let original: String
    let number: Int

    var key: String { number == 1 ? original : KeyTemplate.disambiguated(original, number: number) }

    /// The note for the checkpoint; the original key needs none.
    var notes: [String: [UInt8]] { number == 1 ? [:] : [Self.noteName: Array("\(number)".utf8)] }

    init(_ original: String, number: Int = 1) {
        self.original = original
        self.number = number
    }

    init(_ original: String, _ entries: [String: [UInt8]]) {
        let noted = entries[Self.noteName].flatMap { Int(String(decoding: $0, as: UTF8.self)) }
        self.init(original, number: noted.flatMap { (2...Self.mostVersions).contains($0) ? $0 : nil } ?? 1)
    }

    /// nil when there are too many.
    var next: ChosenKey? { number < Self.mostVersions ? ChosenKey(original, number: number + 1) : nil }
}
