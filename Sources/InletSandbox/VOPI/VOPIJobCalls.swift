import HTTPTypes
import Hummingbird
import InletCore

/// The calls for jobs.
struct VOPIJobCalls: Sendable {
    private static let statuses = Set(VOPIJob.Step.allCases.map(\.rawValue) + ["pending", "failed", "cancelled"])
        .subtracting(["waiting"])

    let shop: VOPIShop

    func create(_ message: CreateJobMessage) throws -> Response {
        let job = try shop.createJob(message)
        return try .json(VOPIVoice(shop.rules).created(job), status: 201)
    }

    func list(_ query: SignableRequest) throws -> Response {
        let limit = try SchemaBounds.whole(query.value("limit"), "/limit", default: 20, 1...100)
        let offset = try SchemaBounds.whole(query.value("offset"), "/offset", default: 0, 0...Int(Int32.max))
        let status = query.value("status")
        if let status, !Self.statuses.contains(status) {
            throw VOPIRefusal.schema(
                path: "/status", keyword: "enum",
                params: ["allowedValues": .array(Self.statuses.sorted().map(SandboxJSON.string))],
                message: "must be equal to one of the allowed values")
        }
        let (jobs, total, voice) = shop.page(status: status, offset: offset, limit: limit)
        return try .json(
            SandboxJSON.object(["jobs": .array(jobs.map(voice.line)), "total": .number(Double(total))]))
    }

    func job(_ id: String, host: String) throws -> Response {
        let (job, voice) = try shop.job(id)
        return try .json(voice.full(job, origin: VOPIResultCalls.origin(host)))
    }

    func status(_ id: String) throws -> Response {
        let (job, voice) = try shop.job(id)
        return try .json(voice.status(job))
    }

    func cancel(_ id: String) throws -> Response {
        try shop.cancel(id)
        let body: SandboxJSON = [
            "id": .string(id), "status": "cancelled", "message": "Job cancelled successfully",
        ]
        return try .json(body)
    }

    /// Deletes; on the older server, cancels.
    func delete(_ id: String) throws -> Response {
        if shop.rules.generation == .apiKey { return try cancel(id) }
        try shop.delete(id)
        return Response(status: .noContent)
    }

    func balance(_ query: SignableRequest) throws -> Response {
        _ = try SchemaBounds.whole(query.value("limit"), "/limit", default: 20, 1...100)
        let (credits, charged) = shop.ledger()
        let balance = SandboxJSON.number(Double(credits))
        if query.value("includeHistory") == "false" { return try .json(["balance": balance] as SandboxJSON) }
        let lines = charged.map { job -> SandboxJSON in
            [
                "id": .string("charge-\(job.id)"), "creditsDelta": -1, "type": "spend",
                "description": "Video processing (0s)", "createdAt": .string(job.created.rfc3339),
                "jobId": .string(job.id),
            ]
        }
        return try .json(["balance": balance, "transactions": .array(lines)] as SandboxJSON)
    }
}
