package import InletCore

extension FilePolicy {
    /// Of the work of a share: nothing of it depends on one agent's journal, as duplicates and lists of units do.
    package init(ofPlace plan: Plan) {
        self.init(onSuccess: plan.onSuccess, onFailure: plan.onFailure, retry: plan.retry)
        (receipts, window, ownLabels) = (plan.receipts, plan.window, plan.ownLabels)
        isOfPlace = true
    }
}
