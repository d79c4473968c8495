import Hummingbird
import InletCore

/// The reads of what a job has made.
struct VOPIResultCalls: Sendable {
    private static let lifetimes = 60...86_400

    let shop: VOPIShop

    /// In front of the keys of objects, in addresses without a signature.
    static func origin(_ host: String) -> String { "http://\(host)\(VOPIRoute.bucket)" }

    func downloadURLs(_ id: String, _ query: SignableRequest, fault: FaultAction?) throws -> Response {
        let lifetime = try SchemaBounds.whole(query.value("expiresIn"), "/expiresIn", default: 3600, Self.lifetimes)
        let (job, _) = try shop.job(id)
        guard job.completed != nil else {
            throw VOPIRefusal.bare(
                400, code: "BAD_REQUEST", message: "Job has no results yet. Wait for job to complete.")
        }
        let dropped = Set(job.pictures.suffix(shop.rules.droppedLinks).map(\.object.key))
        let link = { (object: StoredObject) -> SandboxJSON? in
            guard !dropped.contains(object.key) else { return nil }
            let request = SignableRequest(method: "GET", path: VOPIRoute.bucket + object.key, host: query.host)
            return .string(shop.presigned(request, lifetime: lifetime, fault: fault))
        }
        let frames = job.frames.compactMap { frame -> SandboxJSON? in
            link(frame.object).map { ["frameId": .string(frame.id), "downloadUrl": $0] }
        }
        var answer: [String: SandboxJSON] = [
            "jobId": .string(id), "expiresIn": .number(Double(lifetime)), "frames": .array(frames),
            "commercialImages": job.images(link),
        ]
        if shop.rules.listsMetadata { answer["productMetadata"] = job.metadata ?? .null }
        return try .json(SandboxJSON.object(answer))
    }

    func metadata(_ id: String) throws -> Response {
        let (job, _) = try shop.job(id)
        guard let metadata = job.metadata else {
            throw VOPIRefusal.bare(
                404, code: "NOT_FOUND",
                message:
                    "Job has no product metadata. Metadata is only available for jobs processed with audio analysis.")
        }
        return try .json(metadata)
    }

    func deleteImage(_ id: String, frame: String, version: String, host: String) throws -> Response {
        for (field, text) in [("frameId", frame), ("version", version)] {
            let isPlain = !text.isEmpty && text.utf8.allSatisfy(Self.isPlain)
            guard isPlain else { throw VOPIRefusal.value(field: field, message: "Invalid") }
        }
        let job = try shop.deleteImage(id, frame: frame, version: version)
        return try .json(["commercialImages": job.images { .string(Self.origin(host) + $0.key) }] as SandboxJSON)
    }

    /// These know no owner, and of unknown jobs they say that there is nothing.
    func read(_ what: VOPIRoute.Read, _ id: String, host: String) throws -> Response {
        // Why there is none, these do not say.
        guard let job = try? shop.job(id).job else {
            switch what {
            case .video: throw VOPIRefusal.full(404, code: "NOT_FOUND", message: "Video not found")
            case .groupedImages: return try .json(SandboxJSON.empty)
            default: return try .json(SandboxJSON.array([]))
            }
        }
        let origin = Self.origin(host)
        switch what {
        case .video: return try .json(Self.video(job))
        case .frames: return try .json(SandboxJSON.array(Self.frames(job, origin, isFinal: false)))
        case .finalFrames: return try .json(SandboxJSON.array(Self.frames(job, origin, isFinal: true)))
        case .images: return try .json(SandboxJSON.array(Self.images(job, origin)))
        case .groupedImages: return try .json(Self.grouped(job, origin))
        }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        let scalar = Unicode.Scalar(byte)
        return scalar.properties.isAlphabetic && byte < 0x80 || "0123456789_.-".unicodeScalars.contains(scalar)
    }

    private static func video(_ job: VOPIJob) -> SandboxJSON {
        [
            "id": .string("video-\(job.id)"), "jobId": .string(job.id), "sourceUrl": .string(job.videoURL),
            "duration": .number(30.5), "width": 1920, "height": 1080, "fps": 30, "codec": "h264", "metadata": [:],
            "createdAt": .string(job.created.rfc3339),
        ]
    }

    private static func frames(_ job: VOPIJob, _ origin: String, isFinal: Bool) -> [SandboxJSON] {
        job.frames.enumerated().map { index, frame in
            var fields: [String: SandboxJSON] = [
                "id": .string("row-\(index)"), "jobId": .string(job.id), "frameId": .string(frame.id),
                "timestamp": .number(Double(index) + 0.5), "s3Url": .string(origin + frame.object.key),
                "productId": "product_1", "variantId": "hero", "angleEstimate": "front",
                "createdAt": .string(job.created.rfc3339),
            ]
            let own: [String: SandboxJSON] =
                isFinal
                ? ["variantDescription": "", "obstructions": [:], "backgroundRecommendations": [:]]
                : [
                    "videoId": .string("video-\(job.id)"), "scores": [:], "isBestPerSecond": true,
                    "isFinalSelection": true,
                ]
            fields.merge(own) { $1 }
            return .object(fields)
        }
    }

    private static func images(_ job: VOPIJob, _ origin: String) -> [SandboxJSON] {
        job.pictures.compactMap { picture in
            guard case .image(_, let version) = picture.place else { return nil }
            return [
                "id": .string(picture.object.key), "jobId": .string(job.id), "frameId": "row-0",
                "version": .string(version), "s3Url": .string(origin + picture.object.key), "backgroundColor": "",
                "backgroundPrompt": "", "success": true, "error": "", "createdAt": .string(job.created.rfc3339),
            ]
        }
    }

    /// The keys are others than those of the result.
    private static func grouped(_ job: VOPIJob, _ origin: String) -> SandboxJSON {
        let keys = (job.images { .string(origin + $0.key) }).fields ?? [:]
        return .object(Dictionary(keys.map { ("product_1_\($0.key)", $0.value) }) { $1 })
    }
}
