package import InletCore
internal import InletTransfer

extension R2Pipeline: ObjectReading {
    /// Through a presigned URL, asked for anew before each request (dialect v1), or below `public_url`.
    package func fetch(_ key: String, _ order: FetchOrder) async throws(DeliveryError) -> Fetched {
        try await Fetching(client: api.client, pool: hashing).run(order) { attempt async throws(DeliveryError) in
            HTTPRequest("GET", try await location(of: key), headers: attempt.headers)
        }
    }

    /// Where the object can be read. - Throws: `.notFound`; `.badRequest` where this destination has no such call.
    func location(of key: String) async throws(DeliveryError) -> HTTPURL {
        if settings.dialect == .v1 {
            if let text = try await api.objectURL(key) { return try api.checked(text) }
            throw DeliveryError(
                .giveUp, .notFound, "\(settings.api.redacted) has no object '\(DisplayText.escape(key))'")
        }
        guard let base = settings.publicURL else {
            throw DeliveryError(
                .giveUp, .badRequest,
                "dialect \(settings.dialect.rawValue) has no call that reads objects; set public_url on this destination"
            )
        }
        return base.appending(path: key)
    }
}

extension S3Pipeline: ObjectReading {
    /// GetObject; every request is signed anew, its range with it.
    package func fetch(_ key: String, _ order: FetchOrder) async throws(DeliveryError) -> Fetched {
        try await Fetching(client: api.client, pool: hashing).run(order) { attempt async throws(DeliveryError) in
            if let status = attempt.refusal, status == 401 || status == 403 {
                throw DeliveryError(
                    .credentials, .unauthorized,
                    "fetching \(api.url(key).redacted) was answered with \(status): these keys may not read it, or there "
                        + "is no such object and they may not list the bucket")
            }
            return try api.signed(S3API.Call(method: "GET", key: key, headers: attempt.headers))
        }
    }
}
