package import InletCore

/// What is done with a file after its deliveries, frozen at admission with the rest of the plan.
package struct FilePolicy: Sendable, Hashable, Codable {
    package var onSuccess: Route.OnSuccess
    package var onFailure: Route.OnFailure
    package var retry: RetryPolicy
    package var receipts = ReceiptPlace.none
    package var dedupe = DuplicateRule.off
    package var manifest: ManifestRule?
    package var window: DeliveryWindow?
    /// The labels that its sidecar gave it, by name: those of its unit do not replace them.
    package var ownLabels: Set<String> = []

    package init(onSuccess: Route.OnSuccess, onFailure: Route.OnFailure, retry: RetryPolicy) {
        self.onSuccess = onSuccess
        self.onFailure = onFailure
        self.retry = retry
    }
}

/// Policies of earlier versions lack what came later; what is not asked for is not written.
extension FilePolicy {
    private enum CodingKeys: String, CodingKey {
        case onSuccess, onFailure, retry, receipts, dedupe, manifest, window
        case ownLabels = "own_labels"
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            onSuccess: try values.decode(Route.OnSuccess.self, forKey: .onSuccess),
            onFailure: try values.decode(Route.OnFailure.self, forKey: .onFailure),
            retry: try values.decode(RetryPolicy.self, forKey: .retry))
        receipts = try values.decodeIfPresent(ReceiptPlace.self, forKey: .receipts) ?? .none
        dedupe = try values.decodeIfPresent(DuplicateRule.self, forKey: .dedupe) ?? .off
        manifest = try values.decodeIfPresent(ManifestRule.self, forKey: .manifest)
        window = try values.decodeIfPresent(DeliveryWindow.self, forKey: .window)
        ownLabels = try values.decodeIfPresent(Set<String>.self, forKey: .ownLabels) ?? []
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(onSuccess, forKey: .onSuccess)
        try values.encode(onFailure, forKey: .onFailure)
        try values.encode(retry, forKey: .retry)
        if receipts != .none { try values.encode(receipts, forKey: .receipts) }
        if dedupe != .off { try values.encode(dedupe, forKey: .dedupe) }
        try values.encodeIfPresent(manifest, forKey: .manifest)
        try values.encodeIfPresent(window, forKey: .window)
        if !ownLabels.isEmpty { try values.encode(ownLabels.sorted(), forKey: .ownLabels) }
    }
}
