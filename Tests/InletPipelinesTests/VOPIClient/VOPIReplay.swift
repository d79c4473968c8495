import InletCore
import InletTransfer

@testable import InletPipelines

/// Plays one vector: makes the call that asks for it, and says in a few words what our client concluded.
struct VOPIReplay: Sendable {
    let vector: VOPIVector
    let api: VOPIAPI

    func conclude() async -> String {
        do throws(DeliveryError) {
            return try await call()
        } catch {
            let verdict =
                switch error.verdict {
                case .retry: "retry"
                case .outage: "outage"
                case .giveUp: "giveUp"
                case .credentials: "credentials"
                case .sourceChanged, .sourceGone, .cancelled: "\(error.verdict)"
                }
            return "\(verdict) \(error.code.rawValue)"
        }
    }

    private func call() async throws(DeliveryError) -> String {
        let parts = vector.path.split(separator: "/").map { String($0) }
        switch (vector.method, parts.count > 2 ? parts[2] : parts.last ?? "", parts.count) {
        case ("GET", "ready", _): return try await api.isReady() ? "ready" : "not ready"
        case ("POST", "uploads", 4): return try await presign()
        case ("POST", "jobs", 3): return said(try await api.createJob(newJob))
        case ("GET", "jobs", 3): return try await list()
        case ("POST", "auth", 4) where parts[3] == "refresh":
            _ = try await api.accessToken()
            return "token"
        case ("GET", "credits", 4) where parts[3] == "balance":
            return try await api.balance().map { "\(Int($0)) credits" } ?? "nothing"
        case (_, "jobs", 4...): return try await aboutJob(parts[3], Array(parts.dropFirst(4)))
        default: return try await other()
        }
    }

    private func aboutJob(_ id: String, _ rest: [String]) async throws(DeliveryError) -> String {
        switch (vector.method, rest.joined(separator: "/")) {
        case ("GET", ""): return said(try await api.job(id))
        case ("GET", "status"): return said(try await api.status(id))
        case ("GET", "download-urls"): return try await downloads(id)
        case ("GET", "metadata"): return try await api.metadata(id) == nil ? "nothing" : "metadata"
        case ("GET", "frames"): return "\(try await api.frames(id).count) frames"
        case ("GET", "frames/final"): return "\(try await api.frames(id, final: true).count) frames"
        case ("GET", "images/grouped"): return said(try await api.groupedImages(id))
        case ("POST", "cancel"): try await api.cancel(id)
        case ("DELETE", "") where vector.generation == .older: try await api.cancel(id)
        case ("DELETE", ""): try await api.delete(id)
        case ("DELETE", _) where rest.count == 3:
            return said(try await api.deleteImage(id, frame: rest[1], version: rest[2]))
        default: return try await other()
        }
        return "done"
    }

    // MARK: - Calls

    private func presign() async throws(DeliveryError) -> String {
        let body = vector.body
        let place = try await api.presign(
            filename: body["filename"].text, contentType: body["contentType"].text ?? "video/mp4",
            life: .seconds(body["expiresIn"].integer ?? 3600))
        let key = place.publicURL.split(separator: "/").suffix(2).joined(separator: "/")
        return "place \(key) for \(place.expiresIn.components.seconds) s"
    }

    private var newJob: VOPINewJob {
        let body = vector.body
        var config = VOPIJobConfig()
        config.fps = body["config"]["fps"].number
        config.batchSize = body["config"]["batchSize"].integer
        let versions = body["config"]["commercialVersions"].list.compactMap(\.text)
        config.commercialVersions = versions.isEmpty ? nil : versions
        config.aiCleanup = body["config"]["aiCleanup"].boolean
        config.geminiModel = body["config"]["geminiModel"].text
        config.stackID = body["config"]["stack"]["stackId"].text
        return VOPINewJob(
            videoURL: body["videoUrl"].text ?? "", config: config, callbackURL: body["callbackUrl"].text,
            estimatedDuration: body["estimatedDurationSeconds"].number)
    }

    private func list() async throws(DeliveryError) -> String {
        let page = try await api.jobs(
            status: vector.query("status"), limit: vector.query("limit").flatMap { Int($0) } ?? 100,
            offset: vector.query("offset").flatMap { Int($0) } ?? 0)
        return "\(page.jobs.count) jobs of \(page.total ?? -1)"
    }

    private func downloads(_ id: String) async throws(DeliveryError) -> String {
        let life = vector.query("expiresIn").flatMap { Double($0) } ?? 3600
        let downloads = try await api.downloadURLs(id, life: .seconds(life))
        let images = downloads.images.values.reduce(0) { $0 + $1.count }
        let metadata = downloads.productMetadata == nil ? "" : ", metadata"
        return "\(downloads.frames.count) frames, \(images) images" + metadata
    }

    /// What nobody calls is at least sent and judged like the rest.
    private func other() async throws(DeliveryError) -> String {
        let request = api.request(
            vector.method, String(vector.path.dropFirst()), body: vector.body == .null ? nil : vector.body.plain)
        _ = try await api.send(request, .read, "asking")
        return "done"
    }

    // MARK: - Words

    private func said(_ job: VOPIJob) -> String {
        let error = job.error.map { ", error: \($0)" } ?? ""
        let result = job.result.map { ", \($0.count) files" } ?? ""
        return "job \(job.status.text)" + error + result
    }

    private func said(_ links: [String: [String: String]]) -> String {
        "\(links.count) variants, \(links.values.reduce(0) { $0 + $1.count }) images"
    }
}
