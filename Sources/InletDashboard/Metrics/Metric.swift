/// Every metric of `/metrics`, once and in the page's order: the raw value is its name, which is never changed.
///
/// Seconds and bytes as Prometheus has them; what ends in `_total` counts from the agent's start.
enum Metric: String, CaseIterable, Sendable {
    case info = "inlet_info"
    case startTime = "inlet_start_time_seconds"
    case journalFailing = "inlet_journal_failing"
    case journalWrites = "inlet_journal_write_seconds"
    case files = "inlet_files"
    case fileBytes = "inlet_file_bytes"
    case filesEnded = "inlet_files_ended_total"
    case filesIgnored = "inlet_ignored_files"
    case queueWaiting = "inlet_queue_waiting"
    case oldestWaiting = "inlet_oldest_waiting_seconds"
    case deliveriesOpen = "inlet_deliveries_open"
    case deliveries = "inlet_deliveries_total"
    case deliveredBytes = "inlet_delivered_bytes_total"
    case deliveryDuration = "inlet_delivery_duration_seconds"
    case retries = "inlet_delivery_retries_total"
    case bytesInFlight = "inlet_transfer_bytes_in_flight"
    case destinationUp = "inlet_destination_up"
    case destinationState = "inlet_destination_state"
    case destinationPaused = "inlet_destination_paused"
    case limit = "inlet_limit_bytes_per_second"
    case rootUp = "inlet_root_up"
    case settling = "inlet_settling_files"
    case watches = "inlet_watches"
    case polled = "inlet_polled_folders"
    case watchLimit = "inlet_watch_limit"
    case overflows = "inlet_watch_overflows_total"
    case resuming = "inlet_resuming_files"
    case resumed = "inlet_resumed_files"
    case recovered = "inlet_recovered_deliveries_total"
    case continued = "inlet_delivery_resumes_total"
    case residentMemory = "process_resident_memory_bytes"
    case openDescriptors = "process_open_fds"
    case processorTime = "process_cpu_seconds_total"

    enum Kind: String, Sendable {
        case counter
        case gauge
        case histogram
    }

    var kind: Kind {
        switch self {
        case .journalWrites, .deliveryDuration: .histogram
        default: rawValue.hasSuffix("_total") ? .counter : .gauge
        }
    }

    /// The names of its series' labels, in their order.
    var labels: [String] {
        switch self {
        case .info: ["version"]
        case .files, .fileBytes: ["state"]
        case .filesEnded: ["route", "state"]
        case .deliveriesOpen, .destinationState: ["destination", "state"]
        case .deliveries: ["destination", "result"]
        case .deliveredBytes, .deliveryDuration, .retries, .continued, .destinationUp, .destinationPaused, .limit:
            ["destination"]
        case .rootUp, .settling, .watches, .polled: ["root"]
        case .resumed: ["result"]
        default: []
        }
    }
}
