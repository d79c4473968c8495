package import InletCore
internal import InletLinux
internal import InletTransfer

/// What jobs made, and what the account can pay.
extension VOPIAPI {
    /// `GET /api/v1/jobs/:id/download-urls`, the one way to the files; ask right before fetching.
    /// - Parameter life: held to what the server takes, 60 s to a day.
    /// - Throws: `.conflict` when the job has no results yet, `.notFound` as `job`.
    package func downloadURLs(_ id: String, life: Duration) async throws(DeliveryError) -> VOPIDownloads {
        let life = Self.life(life)
        let request = try request(
            "GET", job: id, "/download-urls", query: [("expiresIn", String(life.components.seconds))], limit: 16 << 20,
            patience: .seconds(60))
        let answer = try await send(request, .downloads, "asking for the results of job \(id)")
        guard let downloads = VOPIDownloads(answer.value, asked: life, rules: settings.linkRules) else {
            throw answer.misunderstood
        }
        return downloads
    }

    /// `GET /api/v1/jobs/:id/metadata`: transcript, product and platform texts as they are; nil when there are none, or no
    /// such job.
    package func metadata(_ id: String) async throws(DeliveryError) -> VOPIValue? {
        try await found(
            try request("GET", job: id, "/metadata", limit: 4 << 20), "asking for the metadata of job \(id)"
        )?.value.objectIfSet
    }

    /// `GET /api/v1/jobs/:id/frames`: every frame that was looked at; thousands for a long video.
    package func frames(_ id: String) async throws(DeliveryError) -> [VOPIFrame] {
        try await list(id, "/frames").compactMap { VOPIFrame($0) }
    }

    /// `GET /api/v1/jobs/:id/frames/final`: the frames that were chosen.
    package func finalFrames(_ id: String) async throws(DeliveryError) -> [VOPIFrame] {
        try await list(id, "/frames/final").compactMap { VOPIFrame($0) }
    }

    /// `GET /api/v1/jobs/:id/images`.
    package func images(_ id: String) async throws(DeliveryError) -> [VOPIImage] {
        try await list(id, "/images").compactMap { VOPIImage($0) }
    }

    /// `GET /api/v1/jobs/:id/images/grouped`: variant, then version, then URL of the private bucket. An unknown job has
    /// none.
    package func groupedImages(_ id: String) async throws(DeliveryError) -> [String: [String: String]] {
        let request = try request("GET", job: id, "/images/grouped", limit: 16 << 20)
        let answer = try await send(request, .read, "listing the images of job \(id)")
        guard answer.value.isObject || answer.value.isEmptyOfAnyKind else { throw answer.misunderstood }
        return VOPIValue.links(answer.value)
    }

    /// `GET /api/v1/jobs/:id/video`; nil when the server has not measured it.
    package func video(_ id: String) async throws(DeliveryError) -> VOPIVideo? {
        let request = try request("GET", job: id, "/video")
        guard let answer = try await found(request, "asking about the video of job \(id)") else { return nil }
        guard let video = VOPIVideo(answer.value) else { throw answer.misunderstood }
        return video
    }

    /// `DELETE /api/v1/jobs/:id/images/:frame/:version`.
    /// - Returns: the images that are left: variant, version, URL of the private bucket.
    /// - Throws: `.conflict` for a job that is not completed; `.notFound` for an image that is not there; as `delete`.
    package func deleteImage(
        _ id: String, frame: String, version: String
    ) async throws(DeliveryError) -> [String: [String: String]] {
        try Self.check(frame, "frame id")
        try Self.check(version, "version")
        let request = try request("DELETE", job: id, "/images/\(frame)/\(version)")
        try await requireDeleting()
        let answer = try await send(request, .delete, "deleting an image of job \(id)")
        return VOPIValue.links(answer.value["commercialImages"])
    }

    /// `GET /api/v1/credits/balance`; nil where the server has no such thing.
    package func balance() async throws(DeliveryError) -> VOPIBalance? {
        let request = request("GET", "api/v1/credits/balance", query: [("includeHistory", "false")])
        do throws(DeliveryError) {
            let answer = try await send(request, .read, "asking for the balance")
            guard let balance = VOPIBalance(answer.value) else { throw answer.misunderstood }
            return balance
        } catch {
            guard error.code == .notFound || error.code == .badRequest else { throw error }
            return nil
        }
    }

    /// `GET /ready`, without credentials: whether the server's own parts are there.
    package func ready() async throws(DeliveryError) -> VOPIReadiness {
        let response = try await service.answer(to: request("GET", "ready"), isOpen: true)
        let value = VOPIValue(response.jsonBody ?? .null)
        let checks = value["checks"].members.compactMapValues(\.text)
        let isOwnAnswer = response.status == 503 && !checks.isEmpty
        guard response.isSuccess || isOwnAnswer else {
            throw VOPIVerdict(response, at: .read).error(
                response, "asking whether it is ready at \(settings.url.redacted)", hint: "it needs none", now: .now)
        }
        return VOPIReadiness(isReady: response.status != 503 && !checks.values.contains("error"), checks: checks)
    }

    private func list(_ id: String, _ rest: String) async throws(DeliveryError) -> [VOPIValue] {
        // Unpaged: a video of five minutes has 3000 frames of about 400 bytes each.
        let request = try request("GET", job: id, rest, limit: 32 << 20, patience: .seconds(120))
        let answer = try await send(request, .read, "listing the results of job \(id)")
        guard answer.value.isList || answer.value.isEmptyOfAnyKind else { throw answer.misunderstood }
        return answer.value.list
    }

    /// nil for what the server does not have.
    private func found(_ request: HTTPRequest, _ what: String) async throws(DeliveryError) -> VOPIAnswer? {
        do throws(DeliveryError) {
            return try await send(request, .read, what)
        } catch {
            guard error.code == .notFound else { throw error }
            return nil
        }
    }
}
