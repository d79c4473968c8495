package import InletCore
internal import InletTransfer

extension PipelineFactory {
    /// Sets the rates of everything that the factory's pipelines send.
    package var valve: BandwidthValve {
        BandwidthValve { [throttle] rate, destination in
            if let destination { throttle.set(rate, for: destination) } else { throttle.set(rate) }
        }
    }
}
