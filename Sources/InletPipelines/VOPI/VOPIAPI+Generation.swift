internal import FoundationEssentials
package import InletCore
internal import InletLinux
internal import InletTransfer

/// What differs between the generations: how a job is cancelled, and whether it can be deleted.
extension VOPIAPI {
    /// What the server is: asked once, then remembered on disk.
    /// - Throws: when the server does not answer, refuses us, or cannot be told; nothing is deleted or cancelled then.
    package func generation() async throws(DeliveryError) -> VOPIGeneration {
        if let known = try await book.generation() { return known }
        return try await askGeneration()
    }

    /// Stops a job that has not begun; one that runs goes on, and may still complete.
    /// - Throws: `.conflict` when the job has ended, `.notFound` as `job`.
    package func cancel(_ id: String) async throws(DeliveryError) {
        let (post, delete) = (try request("POST", job: id, "/cancel"), try request("DELETE", job: id))
        var generation = try await generation()
        // A server may have been renewed since it was asked, and would now destroy what it is to cancel.
        if generation == .older, !book.isConfirmed { generation = try await askGeneration() }
        do throws(DeliveryError) {
            _ = try await send(generation == .newer ? post : delete, .cancel, "cancelling job \(id)")
        } catch {
            // It may have been replaced by an older one: ask again before the next.
            if error.code == .badRequest { await book.forget() }
            throw error
        }
    }

    /// Deletes a job that has ended or not begun, and its files. A job that is not there counts as deleted.
    /// - Throws: `.conflict` while the job runs; `.badRequest` where the server can only cancel.
    package func delete(_ id: String) async throws(DeliveryError) {
        let request = try request("DELETE", job: id)
        try await requireDeleting()
        try await DeliveryError.ignoring(.notFound, in: await send(request, .delete, "deleting job \(id)"))
    }

    /// - Throws: `.badRequest` where a DELETE would not delete.
    func requireDeleting() async throws(DeliveryError) {
        guard try await generation() == .newer else {
            throw DeliveryError(
                .giveUp, .badRequest, "the server at \(settings.url.redacted) is an older one, which cannot delete")
        }
    }

    /// Cancels a job that cannot exist: a server that has the call misses the job, one that has not misses the route.
    private func askGeneration() async throws(DeliveryError) -> VOPIGeneration {
        let nobody = UUID().uuidString.lowercased()
        let response = try await service.answer(to: try request("POST", job: nobody, "/cancel"))
        let said = VOPISaid(response)
        if response.status == 404, said.code == "NOT_FOUND" { return try await book.remember(.newer) }
        if response.status == 404, said.isUnknownRoute { return try await book.remember(.older) }
        // Any other 404 is nothing that the server itself says, and least of all that a job is gone.
        let verdict = response.status == 404 ? .done : VOPIVerdict(response, at: .cancel)
        throw refusal(verdict, response, "asking for the generation, with job \(nobody)")
    }
}
