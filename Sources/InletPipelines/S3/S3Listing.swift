package import InletCore
internal import InletTransfer

package struct ListedObject: Sendable, Equatable {
    package var key: String
    /// Bytes.
    package var size: Int64
    /// RFC 3339, as the store gives it.
    package var modified: String
    /// Without quotes.
    package var etag: String
}

/// A destination whose objects can be listed and removed, for `inlet storage list` and `inlet check --upload`.
package protocol ObjectListing: Sendable {
    /// Gives every object whose key begins with `prefix` to `each`, in the store's order, a page at a time.
    func list(prefix: String, each: @Sendable ([ListedObject]) throws -> Void) async throws

    /// The same destination, sending every file in parts, however small.
    var composing: any Pipeline { get }

    /// Whether a second object under `key`, which has one, is refused, as `if_exists` needs it, when it comes in one request and
    /// when it is composed of parts; nil where the settings do not need it.
    func refusesSecond(_ key: String) async throws(DeliveryError) -> (whole: Bool, composed: Bool)?

    /// Removes one object; only what Inlet itself put there to try.
    func remove(_ key: String) async throws(DeliveryError)
}

extension S3Pipeline: ObjectListing {
    package func remove(_ key: String) async throws(DeliveryError) { try await api.delete(key) }

    package var composing: any Pipeline {
        var settings = settings
        settings.multipartThreshold = -1
        return S3Pipeline(settings: settings, client: api.client, hashing: hashing)
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
            record.parts[1] = UploadRecord.ProvedPart(etag: tag)
            let isRefused = try await refuses { () async throws(DeliveryError) in
                _ = try await api.complete(record, headers: S3Store.onlyNew)
            }
            if isRefused { try await api.abort(id: upload.id, key: key) }
            return (whole, isRefused)
        } catch {
            // Nobody would know of it any more. What keeps it from being dropped is what has just been thrown.
            try? await api.abort(id: upload.id, key: key)
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
