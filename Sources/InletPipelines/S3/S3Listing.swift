package import InletCore
internal import InletTransfer

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
