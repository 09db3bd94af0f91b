"""What compacting costs and saves: recordings replayed under policies, billed by providers' price lists."""
