internal import InletCore
internal import InletJournal
internal import InletPipelines
internal import SystemPackage

/// Puts together what a pipeline is told of a delivery.
struct DeliveryOrderFactory: Sendable {
    let shared: Shared

    /// The order of a delivery to `destination`; only registrations are told of what came before them.
    ///
    /// The time to live of a delivery that waited for others begins here: how long they took is not its fault.
    func order(
        _ file: FileRow, _ delivery: DeliveryRow, to destination: Destination
    ) async throws(DeliveryError) -> DeliveryOrder {
        let place = SourcePlace(file, roots: shared.settings.sendRoots.compactMap { $0.root(of: file.fullPath) })
        var order = DeliveryOrder(
            id: delivery.id, destination: delivery.destination, key: delivery.key ?? "", mediaType: file.mediaType,
            fields: delivery.fields, source: file.identity, path: place.path, root: place.root)
        do {
            let begins = delivery.state == .claimed && (delivery.afterID != nil || delivery.closes != nil)
            if begins, delivery.expiresAt == nil, let life = file.policy.retry.expire {
                let uptime = shared.destinations.uptimes()[delivery.destination] ?? 0
                try await shared.journal.startExpiry(of: delivery.id, at: uptime + life.milliseconds)
            }
            guard destination.storage != nil || destination.closesBatches else { return order }
            let context = try await shared.journal.context(of: delivery, in: file)
            order.upstream = context.upstream
            if !order.upstream.isEmpty { order.upstream[0].path = place.path }
            order.batch = context.batch
            return order
        } catch {
            throw DeliveryError(.outage(after: nil), .internalFault, "\(error)")
        }
    }
}
