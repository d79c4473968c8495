import InletCore
import InletDashboard

/// The limits and windows of `inlet status`.
enum StatusLimits {
    /// nil where there is nothing to say of them.
    static func text(_ report: StatusReport) -> String? {
        let lines = (report.limits ?? []).filter(\.isNotable).map(\.text) + (report.windows ?? []).map(\.text)
        return lines.isEmpty ? nil : "Limits\n" + lines.map { "  \($0)" }.joined(separator: "\n")
    }
}

/// What `inlet route` says of a window.
enum WindowText {
    static func line(_ window: DeliveryWindow, size: Int64, at now: WallTime) -> String {
        let fate =
            if !window.concerns(size: size) {
                "not for this one"
            } else if let opening = window.opening(at: now) {
                "this one would wait until \(opening.rfc3339(in: window.zone))"
            } else {
                "open now"
            }
        return "  window   \(window.text): \(fate)"
    }
}
